// Filters the findings by code, split and class. Without it the page shows all of them.
(() => {
  "use strict";
  const form = document.getElementById("filter");
  if (!form) return;
  const status = document.getElementById("filtered");
  const groups = [...document.querySelectorAll("#findings details[data-code]")];
  const has = (list, value) => !value || list.split(" ").includes(value);

  const update = () => {
    const { code, split, label } = Object.fromEntries(new FormData(form));
    let shown = 0;
    let all = 0;
    for (const group of groups) {
      let here = 0;
      for (const item of group.querySelectorAll(".finding")) {
        item.hidden = !(
          has(group.dataset.code, code) &&
          has(item.dataset.splits, split) &&
          has(item.dataset.labels, label)
        );
        here += !item.hidden;
        all += 1;
      }
      group.hidden = !here;
      if (code || split || label) group.open = here > 0;
      shown += here;
    }
    status.textContent = `${shown} of ${all} findings on this page`;
  };

  form.addEventListener("change", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
})();
