# Recordgen with all it can use: the command, TFX's executors, the Kubeflow step of component.yaml.
# `make image` builds it with what the machine has; docs/image.md tells the rest.
#
#   recordgen  the image (what a build without --target makes, too)
#   test       the image with the repository and all that its tests need
#   dataflow   the image with the files of Beam's own image that start a worker
#
# Certificates and an index of your own are needed at build time alone and never reach the image:
#
#   --secret id=certificates,src=/etc/ssl/certs/ca-certificates.crt
#   --secret id=pip,src=$HOME/.config/pip/pip.conf

# The Beam of the lock: a test holds the two together.
ARG BEAM_VERSION=2.77.0

# glibc 2.41 and Python 3.13: TFX's libraries newer than 1.16 ask for glibc 2.39.
FROM debian:trixie-slim AS python
# Bytecode is valid by what its source holds: times may be changed when the image is made.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates python3 \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/*.log \
    && python3 -m compileall -q -f --invalidation-mode unchecked-hash /usr/lib/python3.*

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
# tfx-1.21, or no-tfx, which is all there is for machines other than x86_64.
ARG LEG=
# gpu adds NVIDIA's libraries for TensorFlow.
ARG ACCELERATOR=cpu
# What the image is for; scripts/setup reads it.
ARG EXTRAS=tensorflow,gcp,kfp,pandas,gcs,s3,http,dask
# The image's user cannot write bytecode at import, so it is made now. Left out are headers, which only
# compiling needs, Arrow's Flight (remote calls; 32 MB), and tests of NumPy and its kin. The README is but
# the package's long description, which nothing reads here.
RUN --mount=type=cache,target=/root/.cache/uv \
    --mount=type=secret,id=certificates,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    touch README.md \
    && export PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    && export PYTHONDONTWRITEBYTECODE=1 PYC_INVALIDATION_MODE=UNCHECKED_HASH UV_LINK_MODE=copy \
    && export EXTRAS && scripts/setup \
    && case $ACCELERATOR in \
        cpu) ;; \
        gpu) scripts/setup --uv pip install --python .venv/bin/python --require-hashes --no-deps \
            --requirement locks/cuda.txt ;; \
        *) echo "ACCELERATOR must be cpu or gpu (got '$ACCELERATOR')" >&2 && exit 1 ;; \
    esac \
    && cd .venv/lib/python3.*/site-packages \
    && rm -rf tensorflow/include pyarrow/include pyarrow/*flight* \
    && for package in numpy pandas pyarrow scipy sklearn; do \
        [ ! -d $package ] || find $package -type d -name tests -prune -exec rm -rf {} +; \
    done

FROM python AS recordgen
RUN useradd --uid 1000 --home-dir /tmp --no-create-home recordgen
COPY --from=dependencies /opt/recordgen/.venv /opt/recordgen/.venv
COPY scripts/entrypoint /usr/local/bin/entrypoint
# The .venv holds a link to this folder: an editable install, so that code is a layer of its own.
COPY components /opt/recordgen/components
RUN chmod -R a+rX /opt/recordgen/components \
    && python3 -m compileall -q --invalidation-mode checked-hash /opt/recordgen/components
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Recordgen" \
      org.opencontainers.image.description="AutoML import files to split, sharded TFRecords" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# HOME can be written by any user and with a read-only root file system; USER names one who has no
# line in /etc/passwd.
ENV PATH="/opt/recordgen/.venv/bin:${PATH}" HOME=/tmp USER=recordgen
# A number: Kubernetes' runAsNonRoot cannot judge a name.
USER 1000
ENTRYPOINT ["entrypoint"]
CMD ["--help"]

FROM recordgen AS test
USER 0
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends git make
WORKDIR /opt/recordgen
COPY locks locks
COPY scripts/setup scripts/
# What the lock holds for tests; what is there already stays.
RUN --mount=type=cache,target=/root/.cache/uv \
    --mount=type=secret,id=certificates,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    UV_LINK_MODE=copy \
    scripts/setup --uv pip install --python .venv/bin/python --require-hashes \
        --build-constraints locks/tfx-1.21.txt --requirement locks/tfx-1.21.txt \
    && rm -rf .setup
COPY --chown=1000:1000 . .
RUN chown 1000:1000 .
USER 1000
# The first process of a container has no parent and must look after orphans: better a shell.
ENTRYPOINT ["sh", "-c", "python -m pytest -n auto --maxprocesses 4 --dist loadfile \"$@\"; exit $?", "sh"]
CMD []

FROM apache/beam_python3.13_sdk:${BEAM_VERSION} AS beam

FROM recordgen AS dataflow
COPY --from=beam /opt/apache/beam /opt/apache/beam
# Otherwise the worker makes an environment of its own, which does not see ours. Beam installs there
# what a job brings along, which takes the right to write.
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
USER 0
ENTRYPOINT ["/opt/apache/beam/boot"]
CMD []

FROM recordgen
