/** One step of a chain's run: how it stands, what it handed on, and what to do about it. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { ask, attempt, say } from '../../lib/feedback';
import { number, t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href } from '../../lib/router';
import { mayComplete, mayRetry } from '../../lib/run_links';
import { span } from '../../lib/time';
import type { Attempt } from '../../lib/types';
import { Act } from '../../ui/act';
import { Json } from '../../ui/code';
import { Button, Card, Facts } from '../../ui/controls';
import { Instant } from '../../ui/instant';
import { JsonDialog } from '../../ui/json_dialog';
import { firstLine } from '../../ui/run_line';
import { StateBadge } from '../../ui/state';
import type { Step } from './types';

interface Props {
  runId: number;
  step: Step;
  onClose: () => void;
  refresh: () => void;
}

export function NodePanel({ runId, step, onClose, refresh }: Props) {
  const [isCompleting, setCompleting] = useState(false);
  const path = `runs/${runId}/steps/${encodeURIComponent(step.id)}`;
  const retry = async (): Promise<void> => {
    const answer = await ask({ title: t('chain.ask_retry', { name: step.id }), body: t('chain.what_retry'), act: t('act.retry'), wantsReason: true });
    if (answer && (await attempt(() => api.post(`${path}/retry`, { reason: answer.reason }), t('chain.retried', { name: step.id })))) refresh();
  };
  const rows: [string, preact.ComponentChildren][] = [
    [t('jobs.kind'), word('kind', step.kind)],
    ...(step.needs.length ? ([[t('chain.needs'), step.needs.join(', ')]] as [string, string][]) : []),
    [t('runs.attempts'), number(step.attempt)],
    ...(step.started_at ? ([[t('chain.started'), <Instant at={step.started_at} short />]] as [string, preact.ComponentChildren][]) : []),
    ...(step.ended_at ? ([[t('chain.ended'), <Instant at={step.ended_at} short />]] as [string, preact.ComponentChildren][]) : []),
  ];
  return (
    <Card title={step.id} side={<Button icon="close" label={t('act.close')} quiet onClick={onClose} />} class="node-panel">
      <div class="body stack">
        <StateBadge state={step.state} reason={step.reason} />
        <div class="line">
          {mayRetry(step.state) && (
            <Act text={t('act.retry')} icon="retry" kind="primary" onClick={() => void retry()} />
          )}
          {mayComplete(step.state) && (
            <Act text={t('act.complete')} icon="ok" onClick={() => setCompleting(true)} />
          )}
          {step.run_id && <Button text={t('chain.open_run')} href={href(`/runs/${step.run_id}`)} />}
        </div>
        {step.error && <pre class="trouble bad">{step.error}</pre>}
        <Facts rows={rows} />
        {step.run_id && step.attempt > 0 && <Attempts id={step.run_id} seen={`${step.state}${step.attempt}`} />}
        {step.artifact !== null && (
          <section class="stack">
            <h3>{t('chain.artifact')}</h3>
            <Json value={step.artifact} label={t('chain.artifact')} />
          </section>
        )}
        {step.checkpoint !== null && (
          <section class="stack">
            <h3>{t('chain.checkpoint')}</h3>
            <Json value={step.checkpoint} label={t('chain.checkpoint')} />
          </section>
        )}
      </div>
      {isCompleting && (
        <JsonDialog
          title={t('chain.complete_title', { name: step.id })}
          label={t('run.artifact')}
          hint={t('run.artifact_hint')}
          value={step.artifact ?? undefined}
          act={t('act.complete_done')}
          reason="needed"
          onClose={() => setCompleting(false)}
          send={async (artifact, reason) => {
            await api.post(`${path}/complete`, { reason, ...(artifact === undefined ? {} : { artifact }) });
            say(t('chain.completed', { name: step.id }));
            refresh();
          }}
        />
      )}
    </Card>
  );
}

function Attempts({ id, seen }: { id: number; seen: string }) {
  const attempts = useResource<Attempt[]>((abort) => api.get(`runs/${id}/attempts`, {}, abort), [id, seen]);
  if (!attempts.data?.length) return null;
  return (
    <ol class="attempts">
      {attempts.data.map((each) => (
        <li key={each.fence}>
          <a href={href(`/runs/${id}`, { attempt: each.number })}>{t('run.attempt', { n: each.number })}</a>
          <span>{each.code ?? word('run.outcome', each.timed_out ? 'timeout' : each.verdict)}</span>
          <span class="muted">{span(each.duration_ms)}</span>
          {each.error && <span class="clip muted">{firstLine(each.error)}</span>}
        </li>
      ))}
    </ol>
  );
}
