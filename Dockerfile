# Two stages: one that builds, one that only holds the result. Nothing of the second needs a shell.
#
#   docker build -t ksana .
#   docker run -p 127.0.0.1:7100:7100 -v ksana:/data -e KSANA_API_KEYS=ksk_… ksana
#
# `docker run --rm ksana key create --offline` prints a key. EXTRAS adds to the stores, such as `celery`.
ARG PYTHON=3.13-slim

FROM python:${PYTHON} AS build
ARG EXTRAS=postgres,mysql,redis,apprise
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/ksana \
 && /opt/ksana/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
      --constraint constraints.txt ".[${EXTRAS}]" \
 && /opt/ksana/bin/python -m pip uninstall --quiet --yes pip \
 && mkdir /empty

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="ksana" \
      org.opencontainers.image.description="Runs things on time" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /opt/ksana /opt/ksana
COPY --from=build --chown=10001:10001 /empty /data
# The log is JSON unless KSANA_LOG_FORMAT says otherwise. Beyond loopback Ksana does not start without a key.
ENV PATH=/opt/ksana/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    KSANA_HOST=0.0.0.0 \
    KSANA_DATA=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 7100
# SIGTERM: no new work, and up to KSANA_GRACE for what is under way.
STOPSIGNAL SIGTERM
# Asks 127.0.0.1:7100; with another KSANA_PORT say KSANA_URL too.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["ksana", "health"]
ENTRYPOINT ["ksana"]
CMD ["serve"]
