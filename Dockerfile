# A server for one or more models: as a user of its own, with the model mounted read-only. See docs/operations.md.
#
#     docker build -t strays .
#     docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -v "$PWD/model:/model:ro" -e STRAYS_TOKEN strays
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/strays
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN /opt/strays/bin/pip install --no-cache-dir -c constraints.txt ".[serve]"
# The default encoder is fetched and made ready here, so that a container starts with it and needs no network.
RUN PIP_NO_CACHE_DIR=1 STRAYS_CACHE=/opt/strays/cache STRAYS_CACHE_SIZE=0 /opt/strays/bin/python -c \
    "from strays.encoders import load_encoder; load_encoder('default', cache=False).encode(['ready'])" \
    && /opt/strays/bin/pip uninstall --yes pip

FROM ${BASE}
COPY --from=build /opt/strays /opt/strays
ENV PATH=/opt/strays/bin:$PATH STRAYS_CACHE=/opt/strays/cache STRAYS_CACHE_SIZE=0 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["strays"]
CMD ["serve", "--model", "/model", "--host", "0.0.0.0"]
