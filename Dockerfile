# Tandem's images, for x86-64:
#   runtime      tandem-trainer, tandem-evaluator and tandem; ACCELERATOR chooses the TensorFlow: cpu, gpu or tpu
#   tensorboard  TensorBoard for runs in buckets, without TensorFlow
# scripts/image builds them. Health is asked for by the chart's probes, so there is no HEALTHCHECK.

# A tag, not a digest: no one digest is right for every mirror of the registry. To hold to one, give
# PYTHON_IMAGE as name@sha256:... It must be Python 3.11, which the locks were resolved for.
ARG PYTHON_IMAGE=docker.io/library/python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS builder
# Given by scripts/image where the machine's own index or authority must be used; they stay in this stage.
ARG PIP_INDEX_URL
ARG PIP_CERT
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all:
WORKDIR /build
RUN python -m venv --without-pip /opt/tandem

FROM builder AS runtime-builder
ARG ACCELERATOR=cpu
COPY requirements/build.lock requirements/runtime-${ACCELERATOR}.lock requirements/
# TensorFlow's C++ headers are for compiling operations, which nobody does here: 290 MB.
RUN python -m venv tools \
    && tools/bin/pip install --require-hashes --requirement requirements/build.lock \
    && tools/bin/pip --python /opt/tandem/bin/python install \
        --require-hashes --requirement "requirements/runtime-${ACCELERATOR}.lock" \
    && rm -r /opt/tandem/lib/python3.11/site-packages/tensorflow/include
COPY pyproject.toml README.md LICENSE ./
COPY tandem tandem
COPY services services
RUN tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && tools/bin/pip --python /opt/tandem/bin/python install --no-deps wheels/*.whl

FROM builder AS tensorboard-builder
COPY requirements/tensorboard.lock requirements/
RUN pip --python /opt/tandem/bin/python install \
    --require-hashes --requirement requirements/tensorboard.lock

FROM ${PYTHON_IMAGE} AS init
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini=0.19.0-* \
    && rm -r /var/lib/apt/lists/*

FROM ${PYTHON_IMAGE} AS base
# All that is written goes below /tmp, so that the root may be read-only. Python's own files come compiled.
# GKE puts the GPU driver's libraries into /usr/local/nvidia.
ENV PATH=/opt/tandem/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LD_LIBRARY_PATH=/usr/local/nvidia/lib64
# As process 1 it passes signals and exit codes on and reaps what `kubectl exec` leaves behind. Whoever names
# a command of his own in Kubernetes does without, unless it begins with tini.
COPY --from=init /usr/bin/tini-static /usr/bin/tini
ENTRYPOINT ["tini", "--"]
# Nobody's number, so that it can be no one's on the node; Kubernetes' runAsNonRoot wants a number.
USER 65532:65532
WORKDIR /tmp

FROM base AS tensorboard
COPY --from=tensorboard-builder /opt/tandem /opt/tandem
CMD ["tensorboard", "--help"]
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="Tandem's TensorBoard" \
    org.opencontainers.image.description="TensorBoard for runs in buckets" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.created="${CREATED}"

# Last, so that a build without a target makes it.
FROM base AS runtime
COPY --from=runtime-builder /opt/tandem /opt/tandem
CMD ["tandem", "--help"]
ARG ACCELERATOR=cpu
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="Tandem" \
    org.opencontainers.image.description="Trains an object detector and evaluates every checkpoint of it" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.created="${CREATED}" \
    dev.tandem.accelerator="${ACCELERATOR}"
