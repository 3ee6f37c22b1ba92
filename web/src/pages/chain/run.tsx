/** One run of a chain: its graph in live colours, its times, its place among the last runs. */
import { useEffect, useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { ask, attempt, say, sayError } from '../../lib/feedback';
import { number, t, word } from '../../lib/i18n';
import { reasoned } from '../../lib/job_actions';
import { useKey } from '../../lib/keys';
import { onLive } from '../../lib/live';
import { useResource, type Resource } from '../../lib/resource';
import { href, navigate, param, setQuery } from '../../lib/router';
import { mayComplete, mayRetry, reasonOf } from '../../lib/run_links';
import { familyOf, isFinal, STATES } from '../../lib/states';
import { now, span } from '../../lib/time';
import type { Run } from '../../lib/types';
import { Act } from '../../ui/act';
import { Json } from '../../ui/code';
import { Button, Card, Menu, PageHead, Tabs } from '../../ui/controls';
import { Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { JsonDialog } from '../../ui/json_dialog';
import { StateBadge, StateMark } from '../../ui/state';
import type { Neighbours } from '../run/types';
import { Gantt } from './gantt';
import { Graph } from './graph';
import { RunGrid } from './grid';
import { NodePanel } from './node_panel';
import type { Layout, Step } from './types';

const VIEWS = ['graph', 'gantt', 'grid'] as const;

export function ChainRun({ id, rid }: { id: number; rid: number }) {
  const run = useResource<Run>((abort) => api.get(`runs/${rid}`, {}, abort), [rid], {
    live: ['run'],
    wants: (event) => event.id === rid,
    pace: 500,
  });
  const steps = useSteps(rid);
  const { data } = run;
  const trail = [
    { href: href('/chains'), text: t('nav.chains') },
    { href: href(`/chains/${id}`), text: data?.job_name ?? t('chain.title', { id }) },
  ];
  if (!data || !steps.data) {
    return (
      <>
        <PageHead title={t('run.title', { id: rid })} trail={trail} />
        <Pending {...(data ? steps : run)} />
      </>
    );
  }
  const refresh = (): void => {
    run.refresh();
    steps.refresh();
  };
  return (
    <>
      <PageHead title={t('run.title', { id: rid })} trail={trail} side={<Actions id={id} run={data} refresh={refresh} />}>
        <Meta run={data} steps={steps.data} />
      </PageHead>
      {data.error && <pre class="trouble bad">{data.error}</pre>}
      <Views id={id} run={data} steps={steps.data} refresh={refresh} />
    </>
  );
}

/** The steps, in the colours of the newest events; what events do not carry follows a moment later. */
function useSteps(rid: number): Resource<Step[]> {
  const steps = useResource<Step[]>((abort) => api.get(`runs/${rid}/steps`, {}, abort), [rid], {
    live: ['run'],
    wants: (event) => event.patch?.parent_id === rid || event.id === rid,
    pace: 1500,
  });
  const [news, setNews] = useState<Map<string, Partial<Step>>>(new Map());
  useEffect(
    () =>
      onLive(({ topic, id, patch }) => {
        if (topic !== 'run' || patch?.parent_id !== rid || typeof patch.step !== 'string') return;
        const { state, reason, attempt: tries, error, started_at, ended_at } = patch;
        const moved = { run_id: id, state, reason, attempt: tries, error, started_at, ended_at } as Partial<Step>;
        setNews((old) => new Map(old).set(patch.step as string, moved));
      }),
    [rid],
  );
  useEffect(() => setNews(new Map()), [steps.data]);
  return { ...steps, data: steps.data?.map((step) => ({ ...step, ...news.get(step.id) })) };
}

function Meta({ run, steps }: { run: Run; steps: Step[] }) {
  const took = run.duration_ms ?? (run.started_at && !isFinal(run.state) ? Math.max(0, now.value - Date.parse(run.started_at)) : null);
  const counts = STATES.map((state) => [state, steps.filter((step) => step.state === state).length] as const).filter(([, count]) => count > 0);
  return (
    <div class="meta">
      <StateBadge state={run.state} reason={reasonOf(run)} />
      <span>
        {t('run.planned')} <Instant at={run.planned_at} short />
      </span>
      {took !== null && <span>{t('run.took', { took: span(took) })}</span>}
      <span>{t('run.by', { trigger: word('trigger', run.trigger) })}</span>
      {counts.map(([state, count]) => (
        <span key={state} class={`line count-of ${familyOf(state)}`}>
          <StateMark state={state} /> {number(count)}
        </span>
      ))}
    </div>
  );
}

function Actions({ id, run, refresh }: { id: number; run: Run; refresh: () => void }) {
  const [isCompleting, setCompleting] = useState(false);
  const beside = useResource<Neighbours>((abort) => api.get(`runs/${run.id}/neighbours`, {}, abort), [run.id, run.state]);
  const { previous_same_job: back, next_same_job: on } = beside.data ?? {};
  const go = async (side: 'previous_same_job' | 'next_same_job'): Promise<void> => {
    // A quick finger is ahead of the answer, and a run may have come since.
    const to = beside.data?.[side] ?? (await api.get<Neighbours>(`runs/${run.id}/neighbours`))[side];
    if (to) navigate(href(`/chains/${id}/runs/${to}`));
  };
  useKey('[', 'key.previous_run', () => void go('previous_same_job').catch(sayError));
  useKey(']', 'key.next_run', () => void go('next_same_job').catch(sayError));
  const stop = async (): Promise<void> => {
    const answer = await ask({ title: t('chain.ask_stop', { id: run.id }), body: t('chain.what_stop'), act: t('chain.stop'), wantsReason: true, isDangerous: true });
    if (answer && (await attempt(() => api.post(`runs/${run.id}/cancel`, reasoned(answer.reason) ?? {}), t('chain.stopping')))) refresh();
  };
  const retry = async (): Promise<void> => {
    const answer = await ask({ title: t('chain.ask_retry_all'), body: t('chain.what_retry'), act: t('act.retry'), wantsReason: true });
    if (answer && (await attempt(() => api.post(`runs/${run.id}/retry`, reasoned(answer.reason) ?? {}), t('done.retried', { id: run.id })))) refresh();
  };
  const more = [
    ...(mayComplete(run.state) && !readOnly.value ? [{ text: t('act.complete'), icon: 'ok' as const, onClick: () => setCompleting(true) }] : []),
    { text: t('chain.as_run'), icon: 'right' as const, onClick: () => navigate(href(`/runs/${run.id}`)) },
  ];
  return (
    <>
      {mayRetry(run.state) && (
        <Act text={t('chain.retry_all')} icon="retry" kind="primary" onClick={() => void retry()} />
      )}
      {!isFinal(run.state) && (
        <Act
          text={run.state === 'STOPPING' ? t('state.stopping') : t('chain.stop')}
          icon="stop"
          disabled={run.state === 'STOPPING'}
          onClick={() => void stop()}
        />
      )}
      <Menu label={t('act.more')} items={more} />
      {back ? <Button icon="left" label={t('key.previous_run')} quiet href={href(`/chains/${id}/runs/${back}`)} /> : null}
      {on ? <Button icon="right" label={t('key.next_run')} quiet href={href(`/chains/${id}/runs/${on}`)} /> : null}
      {isCompleting && (
        <JsonDialog
          title={t('run.complete_title', { id: run.id })}
          label={t('run.artifact')}
          hint={t('run.artifact_hint')}
          act={t('act.complete_done')}
          reason="needed"
          onClose={() => setCompleting(false)}
          send={async (artifact, reason) => {
            await api.post(`runs/${run.id}/complete`, { reason, ...(artifact === undefined ? {} : { artifact }) });
            say(t('done.completed', { id: run.id }));
            refresh();
          }}
        />
      )}
    </>
  );
}

function Views({ id, run, steps, refresh }: { id: number; run: Run; steps: Step[]; refresh: () => void }) {
  const view = VIEWS.find((each) => each === param('view')) ?? 'graph';
  const chosen = steps.find((step) => step.id === param('node'));
  // A chain that has not begun may be changed before it does, so the picture is asked for again when it begins.
  const layout = useResource<Layout>((abort) => api.get(`runs/${run.id}/layout`, {}, abort), [run.id, run.started_at]);
  const choose = (node: string): void => setQuery({ node: node === chosen?.id ? null : node });
  const states = new Map(steps.map((step) => [step.id, step.state]));
  const hasParams = run.input && Object.keys(run.input as object).length > 0;
  return (
    <>
      <Tabs label={t('chain.views')} value={view} tabs={VIEWS.map((key) => ({ key, text: t(`chain.${key}`) }))} onChange={(key) => setQuery({ view: key === 'graph' ? null : key })} />
      <div class={chosen ? 'chain-columns' : 'stack'} role="tabpanel" aria-label={t(`chain.${view}`)}>
        <div class="stack">
          <Card>
            {view === 'graph' &&
              (layout.data ? <Graph layout={layout.data} states={states} chosen={chosen?.id} onChoose={choose} /> : <Pending {...layout} />)}
            {view === 'gantt' && <Gantt run={run} steps={steps} chosen={chosen?.id} onChoose={choose} />}
            {view === 'grid' && <RunGrid job={id} run={run.id} />}
          </Card>
          {view === 'graph' && (
            <Card title={t('chain.gantt')}>
              <Gantt run={run} steps={steps} chosen={chosen?.id} onChoose={choose} />
            </Card>
          )}
          {hasParams && (
            <Card title={t('chain.params')}>
              <div class="body">
                <Json value={run.input} label={t('chain.params')} />
              </div>
            </Card>
          )}
        </div>
        {chosen && <NodePanel key={chosen.id} runId={run.id} step={chosen} onClose={() => setQuery({ node: null })} refresh={refresh} />}
      </div>
    </>
  );
}
