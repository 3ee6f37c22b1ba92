/** One attempt in full: what was sent, what came back, which callbacks came, and how it differs from the last success. */
import { api, ApiError } from '../../lib/api';
import { number, t, tn, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href, param, setQuery } from '../../lib/router';
import { span } from '../../lib/time';
import type { Attempt, Body, Run } from '../../lib/types';
import { Code, Diff, Json, MaybeJson } from '../../ui/code';
import { Card, Chip, Facts, Tabs } from '../../ui/controls';
import { Empty, Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import type { Callback, RunDiff } from './types';

const TABS = ['request', 'response', 'callback', 'diff'] as const;

interface Props {
  run: Run;
  attempt: Attempt | undefined;
  callbacks: Callback[];
  zone?: string;
}

export function AttemptCard({ run, attempt, callbacks, zone }: Props) {
  const asked = param('show');
  const tab = TABS.find((each) => each === asked) ?? (attempt?.response || attempt?.error ? 'response' : 'request');
  const tabs = TABS.map((key) => ({
    key,
    text: t(`run.tab_${key}`),
    ...(key === 'callback' && callbacks.length ? { count: callbacks.length } : {}),
  }));
  return (
    <Card
      title={attempt ? t('run.attempt', { n: attempt.number }) : t('run.attempts')}
      side={
        attempt && (
          <span class="line small muted">
            <Instant at={attempt.started_at} zone={zone} short distance={false} />
            <span>{span(attempt.duration_ms)}</span>
            <Chip text={attempt.timed_out ? t('state.timeout') : word('run.outcome', attempt.verdict)} tone={toneOf(attempt)} />
          </span>
        )
      }
    >
      <Tabs label={t('run.parts')} value={tab} tabs={tabs} onChange={(key) => setQuery({ show: key })} />
      <div class="body stack" role="tabpanel" aria-label={t(`run.tab_${tab}`)}>
        {tab === 'request' && <Request attempt={attempt} run={run} />}
        {tab === 'response' && <Response attempt={attempt} isSaid={attempt?.error === run.error} />}
        {tab === 'callback' && <Callbacks callbacks={callbacks} run={run} zone={zone} />}
        {tab === 'diff' && <Difference run={run} />}
      </div>
    </Card>
  );
}

const toneOf = (attempt: Attempt): 'good' | 'warn' | 'bad' | 'plain' =>
  attempt.verdict === 'fail' || attempt.timed_out ? 'bad' : attempt.verdict === 'retry' ? 'warn' : 'good';

function Request({ attempt, run }: { attempt: Attempt | undefined; run: Run }) {
  if (!attempt) return <Empty title={t('run.not_begun')} />;
  if (!attempt.request) {
    return run.input === null ? <p class="muted">{t('run.no_request')}</p> : <Json value={run.input} label={t('run.input')} />;
  }
  return (
    <>
      <Code text={attempt.request.line} label={t('run.request_line')} />
      <BodyView body={attempt.request.body} />
      <Headers headers={attempt.request.headers} />
    </>
  );
}

function Response({ attempt, isSaid }: { attempt: Attempt | undefined; isSaid: boolean }) {
  if (!attempt) return <Empty title={t('run.not_begun')} />;
  const { response } = attempt;
  return (
    <>
      {attempt.error && !isSaid && <Code text={attempt.error} label={t('runs.error_text')} />}
      {response ? (
        <>
          <div class="line">
            {response.code !== null && <strong class="response-code">{response.code}</strong>}
            {response.truncated && <Chip text={t('run.truncated')} tone="warn" />}
          </div>
          <BodyView body={response.body} />
          <Headers headers={response.headers} />
        </>
      ) : attempt.result !== null ? (
        <Json value={attempt.result} label={t('run.result')} />
      ) : (
        !attempt.error && <p class="muted">{t('run.no_response')}</p>
      )}
    </>
  );
}

function BodyView({ body }: { body: Body }) {
  if (!body.bytes) return <p class="muted">{t('run.no_body')}</p>;
  if (body.text !== null) return <MaybeJson text={body.text} label={t('run.body')} />;
  return (
    <>
      <p class="muted">{t('run.binary', { bytes: number(body.bytes) })}</p>
      <Code text={body.base64 ?? ''} label={t('run.body')} />
    </>
  );
}

function Headers({ headers }: { headers: Record<string, string> }) {
  const rows = Object.entries(headers);
  if (!rows.length) return null;
  return (
    <details class="headers" open>
      <summary>{t('run.headers')}</summary>
      <div class="mono">
        <Facts rows={rows.map(([name, value]): [string, string] => [name, value])} />
      </div>
    </details>
  );
}

function Callbacks({ callbacks, run, zone }: { callbacks: Callback[]; run: Run; zone?: string }) {
  return (
    <>
      {run.state === 'CALLBACK_PENDING' && (
        <p>
          {t('run.awaits_callback')} <Instant at={run.deadline_at} zone={zone} short />
        </p>
      )}
      {callbacks.length === 0 && run.state !== 'CALLBACK_PENDING' && <p class="muted">{t('run.no_callbacks')}</p>}
      {callbacks.map((callback) => (
        <section key={callback.id} class="stack">
          <div class="line">
            <Instant at={callback.received_at} zone={zone} short />
            <Chip text={word('run.callback', callback.status)} tone={callback.status === 'RECEIVED' ? 'good' : 'warn'} />
            {callback.note && <span class="muted">{callback.note}</span>}
          </div>
          <BodyView body={callback.body} />
          <Headers headers={callback.headers} />
        </section>
      ))}
    </>
  );
}

// No two runs agree in these, so they explain nothing.
const USUAL = /(run-id|trace-?parent|trace-id|scheduled-at|idempotency-key|webhook-[a-z]+|x-ksana-(attempt|fence)|headers\.date|_ms)$/;

function Difference({ run }: { run: Run }) {
  const diff = useResource<RunDiff>((abort) => api.get(`runs/${run.id}/diff`, {}, abort), [run.id, run.fence]);
  if (diff.error instanceof ApiError && diff.error.status === 404) return <Empty title={t('run.no_success')} text={t('run.no_success_text')} />;
  if (!diff.data) return <Pending {...diff} />;
  const { left } = diff.data;
  const changes = diff.data.changes.map((change) => ({ path: change.path, before: change.left, after: change.right }));
  const telling = changes.filter((change) => !USUAL.test(change.path));
  const usual = changes.filter((change) => USUAL.test(change.path));
  const sides = { left: t('run.title', { id: left.id }), right: t('run.title', { id: run.id }) };
  return (
    <>
      <p>
        {t('run.compared')} <a href={href(`/runs/${left.id}`)}>{t('run.title', { id: left.id })}</a>{' '}
        <Instant at={left.ended_at} short />
      </p>
      <Diff changes={telling} {...sides} />
      {usual.length > 0 && (
        <details class="headers">
          <summary>{tn('run.usual', usual.length)}</summary>
          <Diff changes={usual} {...sides} />
        </details>
      )}
    </>
  );
}
