# Recordgen with all it can use: the command, TFX's executors, the Kubeflow step of component.yaml.
#
#   docker build --tag recordgen:0.1.0 .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:$PWD" --workdir "$PWD" \
#       recordgen:0.1.0 convert labels.csv out
#
# Certificates and an index of your own are needed at build time alone and never reach the image:
#
#   --secret id=certificates,src=/etc/ssl/certs/ca-certificates.crt
#   --secret id=pip,src=$HOME/.config/pip/pip.conf
#
# --build-arg LEG=no-tfx leaves TFX out; on anything but x86_64 it is out in any case.

# glibc 2.41 and Python 3.13: TFX's libraries newer than 1.16 ask for glibc 2.39.
FROM debian:trixie-slim AS python
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*

FROM python AS dependencies
# pyfarmhash, which TFX needs, is compiled. pip fetches uv, and tells it the index of pip.conf.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        g++ python3-dev python3-pip
# The path is final: a .venv that moves no longer works.
WORKDIR /opt/recordgen
COPY locks locks
COPY scripts/setup scripts/
COPY LICENSE pyproject.toml setup.py ./
# Of the package itself only its version: no change of code brings the downloads back.
COPY components/recordgen/version.py components/recordgen/
ARG LEG=
# Bytecode is made now, since the user of the image cannot write it at import. The README is but
# the package's long description, which nothing reads here.
RUN --mount=type=cache,target=/root/.cache/uv \
    --mount=type=secret,id=certificates,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    touch README.md \
    && PYTHONDONTWRITEBYTECODE=1 UV_LINK_MODE=copy scripts/setup

FROM python
RUN useradd --uid 1000 --create-home recordgen
COPY --from=dependencies /opt/recordgen/.venv /opt/recordgen/.venv
# The .venv holds a link to this folder: an editable install, so that code is a layer of its own.
COPY components /opt/recordgen/components
RUN chmod -R a+rX /opt/recordgen/components \
    && python3 -m compileall -q /opt/recordgen/components
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Recordgen" \
      org.opencontainers.image.description="AutoML import CSVs to sharded TFRecords" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
ENV PATH="/opt/recordgen/.venv/bin:${PATH}"
# A number: Kubernetes' runAsNonRoot cannot judge a name.
USER 1000
ENTRYPOINT ["recordgen"]
CMD ["--help"]
