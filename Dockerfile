# The gateway as an image. Without network: `--build-arg PIP_NO_INDEX=1 --build-arg PIP_FIND_LINKS=/wheels` and a folder of wheels there.
ARG PYTHON=docker.io/library/python:3.13-slim-trixie

FROM $PYTHON AS build
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
WORKDIR /source
COPY requirements-image.txt .
RUN python3 -m venv /opt/memory-gateway \
 && /opt/memory-gateway/bin/pip install --no-cache-dir --require-hashes -r requirements-image.txt
COPY . .
RUN /opt/memory-gateway/bin/pip install --no-cache-dir --no-deps . \
 && /opt/memory-gateway/bin/python deploy/slim.py \
 && /opt/memory-gateway/bin/pip uninstall --yes pip \
 && find /opt/memory-gateway -type d -name tests -prune -exec rm -r {} +

FROM $PYTHON
RUN rm -rf /usr/local/lib/python3*/site-packages/pip* /usr/local/bin/pip* /usr/lib/python3*/ensurepip /usr/local/lib/python3*/ensurepip \
 && groupadd --gid 10001 memory \
 && useradd --uid 10001 --gid memory --no-create-home --home-dir /data --shell /usr/sbin/nologin memory \
 && install --directory --owner memory --group memory --mode 700 /data
COPY --from=build /opt/memory-gateway /opt/memory-gateway
ENV PATH=/opt/memory-gateway/bin:$PATH MEMORY_GATEWAY_HOME=/data MEMORY_GATEWAY_HOST=0.0.0.0 PYTHONUNBUFFERED=1
USER memory
WORKDIR /data
VOLUME /data
EXPOSE 8010
HEALTHCHECK --start-period=60s CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ.get('MEMORY_GATEWAY_PORT', 8010)}/ready\", timeout=3)"]
ENTRYPOINT ["memory-gateway"]
