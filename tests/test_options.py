"""The declaration of options, and the files that list them."""

import inspect
import pydoc
from dataclasses import fields
from typing import get_type_hints

import pytest

import recordgen
from recordgen.options import OPTIONS, ConvertOptions, OptionValues
from recordgen.pandas import TensorFlowAccessor
from recordgen.tables.roles import ROLES
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig
from tests.conftest import load_script
from tests.pages import ROOT


@pytest.mark.parametrize(
    "option",
    [*OPTIONS.values(), *TRAINING_OPTIONS.values()],
    ids=[*OPTIONS, *(f"training-{name}" for name in TRAINING_OPTIONS)],
)
def test_a_declaration_is_whole(option):
    """A declaration is complete: help, form of the value, and default."""
    assert option.help
    assert option.help[0].islower() or option.help[0] == "`"
    assert not option.help.endswith(".")
    assert option.help.count("`") % 2 == 0
    assert option.choices or option.metavar
    assert not option.choices or option.default in (*option.choices, None)
    assert option.default is not None or option.unset


def test_every_field_but_what_doors_decide_is_an_option():
    """All fields are options, except ``table`` (detected) and ``confined`` (set by pipelines)."""
    own = ("confined", "table")
    assert [*OPTIONS] == [it.name for it in fields(ConvertOptions) if it.name not in own]
    assert all(f"\n        {name}: " in str(ConvertOptions.__doc__) for name in OPTIONS)
    assert [*TRAINING_OPTIONS] == [*TrainingConfig.__slots__]
    assert OPTIONS["columns"].help.endswith(f"roles: {', '.join(ROLES)}")


OF_FRAMES = [TensorFlowAccessor.to_tfrecord, TensorFlowAccessor.to_tfr]
TAKE_OPTIONS = [recordgen.convert, recordgen.check, recordgen.plan, *OF_FRAMES]


@pytest.mark.parametrize("function", TAKE_OPTIONS)
def test_signatures_list_every_option(function):
    """Editors complete the options; ``help`` has their types, defaults and descriptions."""
    assert function.__annotations__["options"] == "Unpack[OptionValues]"
    signature = inspect.signature(function)
    assert not [p for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]
    assert list(signature.parameters)[-len(OPTIONS) :] == list(OPTIONS)
    hints = get_type_hints(OptionValues)
    shown = " ".join(pydoc.render_doc(function, renderer=pydoc.plaintext).split())
    for name, option in OPTIONS.items():
        parameter = signature.parameters[name]
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert (parameter.default, parameter.annotation) == (option.default, hints[name])
        assert f"{name}: {option.help}." in shown
    with pytest.raises(TypeError, match="nonsense"):
        signature.bind_partial(nonsense=1)


LISTS = [
    "component.yaml",
    "components/recordgen/options/__init__.py",
    "components/recordgen/reading/keywords.py",
    *(f"docs/{page}.md" for page in ("options", "pipeline", "reading-options")),
]


@pytest.mark.parametrize("name", LISTS)
def test_files_list_the_options_as_they_are_declared(name):
    """Files list the current options: run `make options` after a change."""
    script = load_script("options")
    assert name in script.FILES
    assert script.renewed(name) == (ROOT / name).read_text(encoding="utf-8"), "run `make options`"
