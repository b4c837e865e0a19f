# Recordgen with all extras: the command, TFX's executors, the Kubeflow step of component.yaml.
# `make image` builds it; docs/image.md has the details.
#
#   recordgen  the image, and the default target
#   test       the image with the repository and the packages for its tests
#   dataflow   the image with the files from Beam's image that start a worker
#
# Certificates and the settings of a package index are secrets of the build. They are not in the image:
#
#   --secret id=certificates,src=/etc/ssl/certs/ca-certificates.crt
#   --secret id=pip,src=$HOME/.config/pip/pip.conf

# The version of Beam in the lock; a test compares the two.
ARG BEAM_VERSION=2.77.0

# Debian has glibc 2.41 and Python 3.13. TFX's libraries after 1.16 need glibc 2.39.
FROM debian:trixie-slim AS python
# Bytecode is checked by the hash of its source, because the build may change file times.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates python3 \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/*.log \
    && python3 -m compileall -q -f --invalidation-mode unchecked-hash /usr/lib/python3.*

FROM python AS dependencies
# The compiler is for pyfarmhash, a dependency of TFX. pip installs uv and passes on the index of pip.conf.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        g++ python3-dev python3-pip
# The final path: a virtual environment does not work after a move.
WORKDIR /opt/recordgen
COPY locks locks
COPY scripts/setup scripts/
COPY LICENSE pyproject.toml setup.py ./
# Copy only the package's version, so that a change of its code keeps this layer with the downloads.
COPY components/recordgen/version.py components/recordgen/
# tfx-1.21, or no-tfx, the only leg for machines other than x86_64.
ARG LEG=
# gpu adds NVIDIA's libraries for TensorFlow.
ARG ACCELERATOR=cpu
# The extras to install; scripts/setup reads this variable.
ARG EXTRAS=tensorflow,gcp,kfp,pandas,gcs,s3,http,dask
# Compile bytecode now, because the image's user cannot write it at import. Remove headers, which only
# compilers need, Arrow's Flight (remote calls; 32 MB), and the tests of NumPy and similar packages.
# The build needs a README for the package's description; an empty one is enough.
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
# The editable install in .venv links to this folder, so the code has its own layer.
COPY components /opt/recordgen/components
RUN chmod -R a+rX /opt/recordgen/components \
    && python3 -m compileall -q --invalidation-mode checked-hash /opt/recordgen/components
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Recordgen" \
      org.opencontainers.image.description="Turn labelled data into TFRecords that you can trust, and read them back for training" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Any user can write to this HOME, also on a read-only root file system. Users without a line in
# /etc/passwd get their name from USER.
ENV PATH="/opt/recordgen/.venv/bin:${PATH}" HOME=/tmp USER=recordgen
# A number, because Kubernetes' runAsNonRoot cannot check a name.
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
# Add the packages for the tests; installed packages stay.
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
# A shell as the first process, because that process must reap orphans.
ENTRYPOINT ["sh", "-c", "python -m pytest -n auto --maxprocesses 4 --dist loadfile \"$@\"; exit $?", "sh"]
CMD []

FROM apache/beam_python3.13_sdk:${BEAM_VERSION} AS beam

FROM recordgen AS dataflow
COPY --from=beam /opt/apache/beam /opt/apache/beam
# Without this variable, the worker creates its own environment without our packages. Beam installs the
# job's packages into ours, which needs the right to write.
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
USER 0
ENTRYPOINT ["/opt/apache/beam/boot"]
CMD []

FROM recordgen
