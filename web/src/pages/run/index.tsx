/** One run: what happened, attempt by attempt, why, and what to do about it. */
import { useCommands } from '../../shell/palette';
import { api } from '../../lib/api';
import { copy, sayError } from '../../lib/feedback';
import { number, t, tn, word } from '../../lib/i18n';
import { useKey } from '../../lib/keys';
import { useResource } from '../../lib/resource';
import { href, navigate, param, setQuery } from '../../lib/router';
import { delayOf, reasonOf, runHref, runName } from '../../lib/run_links';
import { isFinal } from '../../lib/states';
import { now, span } from '../../lib/time';
import type { Attempt, Fire, Job, Run } from '../../lib/types';
import { Json } from '../../ui/code';
import { Button, Card, Facts, PageHead } from '../../ui/controls';
import { Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { ScheduleText, zoneOf } from '../../ui/schedule';
import { StateBadge } from '../../ui/state';
import { RunActions } from './actions';
import { AttemptCard } from './attempt';
import type { Callback, Neighbours, Segment, Similar, Story } from './types';
import { Waterfall } from './waterfall';

export function RunPage({ id }: { id: string }) {
  const story = useResource<Story>((abort) => tell(id, abort), [id], {
    live: ['run'],
    wants: (event) => String(event.id) === id,
    pace: 500,
  });
  const { data } = story;
  if (!data) {
    return (
      <>
        <PageHead title={t('run.title', { id })} trail={[{ href: href('/runs'), text: t('nav.runs') }]} />
        <Pending {...story} />
      </>
    );
  }
  return <Told story={data} refresh={story.refresh} />;
}

async function tell(id: string, abort: AbortSignal): Promise<Story> {
  const get = <T,>(part: string): Promise<T> => api.get<T>(`runs/${id}${part}`, {}, abort);
  const [run, attempts, waterfall, callbacks] = await Promise.all([
    get<Run>(''),
    get<Attempt[]>('/attempts'),
    get<{ segments: Segment[] }>('/waterfall'),
    get<Callback[]>('/callbacks'),
  ]);
  return { run, attempts, segments: waterfall.segments, callbacks };
}

function Told({ story, refresh }: { story: Story; refresh: () => void }) {
  const { run, attempts, segments, callbacks } = story;
  const job = useResource<Job>(run.job_id ? (abort) => api.get(`jobs/${run.job_id}`, {}, abort) : null, [run.job_id], {
    live: ['job'],
    wants: (event) => event.id === run.job_id,
  });
  const chosen = attempts.find((each) => String(each.number) === param('attempt')) ?? attempts[attempts.length - 1];
  const zone = zoneOf(job.data?.schedule ?? null);
  const trace = traceOf(attempts);
  // A chain leaves the work to its steps and an item to whoever pulls it: what was sent is known to nobody here.
  const hasAttempts = attempts.length > 0 || !['chain', 'item'].includes(run.kind);
  return (
    <>
      <PageHead title={runName(run)} trail={trailOf(run)}>
        <Meta run={run} job={job.data} attempts={attempts} zone={zone} trace={trace} />
      </PageHead>
      <div class="line">
        {run.kind === 'chain' && !run.parent_id && <Button text={t('run.graph')} icon="chain" kind="primary" href={runHref(run)} />}
        <RunActions run={run} attempt={chosen} trace={trace} refresh={refresh} />
        <span class="grow" />
        <Steps run={run} />
      </div>
      {run.error && <Trouble run={run} />}
      {run.progress && !isFinal(run.state) && <Progress progress={run.progress} />}
      <div class={hasAttempts ? 'run-columns' : 'stack'}>
        <div class="stack">
          <Card title={t('run.happened')}>
            <Waterfall
              segments={segments}
              isOver={isFinal(run.state)}
              chosen={chosen?.number}
              onChoose={(attempt) => setQuery({ attempt: String(attempt) })}
            />
          </Card>
          <Decision run={run} job={job.data} zone={zone} />
          {hasInput(run) && (
            <Card title={t('run.input')}>
              <div class="body">
                <Json value={run.input} label={t('run.input')} />
              </div>
            </Card>
          )}
        </div>
        {hasAttempts && <AttemptCard run={run} attempt={chosen} callbacks={callbacks} zone={zone} />}
      </div>
    </>
  );
}

const hasInput = ({ input }: Run): boolean => input !== null && input !== undefined && JSON.stringify(input) !== '{}';

function trailOf(run: Run): { href: string; text: string }[] {
  if (run.parent_id && run.job_id) {
    return [
      { href: href('/chains'), text: t('nav.chains') },
      { href: href(`/chains/${run.job_id}`), text: run.job_name ?? t('chain.title', { id: run.job_id }) },
      { href: href(`/chains/${run.job_id}/runs/${run.parent_id}`, { node: run.step ?? undefined }), text: t('run.title', { id: run.parent_id }) },
    ];
  }
  if (run.job_id) {
    return [
      { href: href('/jobs'), text: t('nav.jobs') },
      { href: href(`/jobs/${run.job_id}`), text: run.job_name ?? t('palette.job', { id: run.job_id }) },
    ];
  }
  return [{ href: href(run.kind === 'item' ? '/queues' : '/runs'), text: t(run.kind === 'item' ? 'nav.queues' : 'nav.runs') }];
}

/** The trace that all attempts belong to, as the targets were told. */
function traceOf(attempts: Attempt[]): string {
  for (const { request } of attempts) {
    const found = Object.entries(request?.headers ?? {}).find(([name]) => name.toLowerCase() === 'traceparent');
    if (found) return found[1].split('-')[1] ?? '';
  }
  return '';
}

interface MetaProps {
  run: Run;
  job: Job | undefined;
  attempts: Attempt[];
  zone?: string;
  trace: string;
}

function Meta({ run, job, attempts, zone, trace }: MetaProps) {
  const nodes = useResource<{ id: number; name: string }[]>((abort) => api.get('nodes', {}, abort), []);
  const delay = delayOf(run);
  const node = run.node_id ?? attempts[attempts.length - 1]?.node_id ?? null;
  const took = run.duration_ms ?? (run.started_at && !isFinal(run.state) ? Math.max(0, now.value - Date.parse(run.started_at)) : null);
  return (
    <div class="meta">
      <StateBadge state={run.state} reason={reasonOf(run)} />
      <span>{t('run.title', { id: run.id })}</span>
      <span>{triesOf(run, job)}</span>
      <span>
        {t('run.planned')} <Instant at={run.planned_at} zone={zone} short />
      </span>
      {delay !== null && <span>{t('run.started', { delay: span(delay) })}</span>}
      {took !== null && <span>{t('run.took', { took: span(took) })}</span>}
      <span>{t('run.by', { trigger: word('trigger', run.trigger) })}</span>
      {node !== null && <span>{t('run.worker', { name: nodes.data?.find((each) => each.id === node)?.name ?? node })}</span>}
      {trace && (
        <button type="button" class="trace" title={t('run.copy_trace')} onClick={() => void copy(trace)}>
          {t('run.trace')} <code>{trace}</code>
        </button>
      )}
    </div>
  );
}

/** Which attempt it is, and of how many; a run that was begun again by hand may have more than its rule allows. */
function triesOf(run: Run, job: Job | undefined): string {
  const most = job?.retry.max_attempts ?? 0;
  return run.attempt > most ? t('run.tries', { n: number(run.attempt) }) : t('run.attempts_of', { n: number(run.attempt), most: number(most) });
}

/** Where to go from here: back and on among all runs, or among those of the same job. */
function Steps({ run }: { run: Run }) {
  const beside = useResource<Neighbours>((abort) => api.get(`runs/${run.id}/neighbours`, {}, abort), [run.id], {
    live: ['run'],
    wants: (event) => event.patch?.job_id === run.job_id,
    pace: 5000,
  });
  const isOfJob = run.job_id !== null && run.parent_id === null;
  const pick = (found: Neighbours | undefined, isNext: boolean): number | null | undefined =>
    isOfJob ? found?.[isNext ? 'next_same_job' : 'previous_same_job'] : found?.[isNext ? 'next' : 'previous'];
  const back = pick(beside.data, false);
  const on = pick(beside.data, true);
  const go = async (isNext: boolean): Promise<void> => {
    // A quick finger is ahead of the answer, and a run may have come since.
    const to = pick(beside.data, isNext) ?? pick(await api.get<Neighbours>(`runs/${run.id}/neighbours`), isNext);
    if (to) navigate(href(`/runs/${to}`));
  };
  useKey('[', 'key.previous_run', () => void go(false).catch(sayError));
  useKey(']', 'key.next_run', () => void go(true).catch(sayError));
  useCommands(
    [
      ...(back ? [{ text: t('key.previous_run'), icon: 'left' as const, act: () => void go(false) }] : []),
      ...(on ? [{ text: t('key.next_run'), icon: 'right' as const, act: () => void go(true) }] : []),
    ],
    [back, on],
  );
  return (
    <nav class="line" aria-label={t('run.neighbours')}>
      {back ? <Button text={t('run.previous')} icon="left" quiet href={href(`/runs/${back}`)} title={t('run.previous_key')} /> : null}
      {on ? <Button text={t('run.next')} icon="right" quiet href={href(`/runs/${on}`)} title={t('run.next_key')} /> : null}
    </nav>
  );
}

/** The error in full, and how often the same has happened. */
function Trouble({ run }: { run: Run }) {
  const similar = useResource<Similar>((abort) => api.get(`runs/${run.id}/similar`, {}, abort), [run.id, run.fence]);
  const found = similar.data;
  const isOver = isFinal(run.state) && run.state !== 'SUCCESS';
  return (
    <section class={`trouble ${isOver ? 'bad' : ''}`} aria-label={t('runs.error_text')}>
      <pre>{run.error}</pre>
      {found && found.count > 1 && run.job_id && (
        <a href={href('/runs', { job_id: run.job_id, error: run.error.split('\n', 1)[0]!.slice(0, 200), range: '7d' })}>
          {tn('run.similar', found.count)}
          {found.is_partial && '+'}
        </a>
      )}
    </section>
  );
}

function Progress({ progress }: { progress: NonNullable<Run['progress']> }) {
  const percent = progress.fraction === null ? null : Math.round(progress.fraction * 100);
  return (
    <div class="line" role="status">
      {percent !== null && (
        <>
          <strong>{percent} %</strong>
          <div class="progress" role="progressbar" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} aria-label={t('run.progress')}>
            <div style={{ width: `${percent}%` }} />
          </div>
        </>
      )}
      <span>{progress.message}</span>
      <Instant at={progress.reported_at} short />
    </div>
  );
}

/** Why it ran when it did, under which rules, and what comes next. */
function Decision({ run, job, zone }: { run: Run; job: Job | undefined; zone?: string }) {
  const isPlanned = run.trigger === 'schedule' || run.trigger === 'catch_up';
  const fires = useResource<Fire[]>(
    job && isPlanned
      ? (abort) => {
          const at = Date.parse(run.planned_at);
          return api.get(`jobs/${job.id}/fires`, { since: new Date(at).toISOString(), until: new Date(at + 1000).toISOString(), limit: 10 }, abort);
        }
      : null,
    [job?.id, run.id],
  );
  const fire = fires.data?.find((each) => each.run_id === run.id);
  if (!job) return null;
  const { retry, overlap } = job;
  const rows: [string, preact.ComponentChildren][] = [
    [
      t('run.decision'),
      fire ? (
        <>
          <Instant at={fire.from_at} zone={zone} short distance={false} /> → {word('decision', fire.decision)}
          {fire.reason && fire.decision !== 'fired' && ` (${word('reason', fire.reason)})`}
        </>
      ) : (
        word('trigger', run.trigger)
      ),
    ],
    [t('form.overlap'), word('overlap', overlap.rule)],
    [
      t('form.retry'),
      retry.max_attempts > 1
        ? t('run.retry_rule', { n: number(retry.max_attempts), delay: retry.initial_delay, strategy: word('strategy', retry.strategy) })
        : t('run.no_retry'),
    ],
    [t('form.schedule'), <ScheduleText job={job} />],
    [t('run.next_fire'), <Instant at={job.next_fire_at} zone={zone} short />],
  ];
  return (
    <Card title={t('run.why')}>
      <div class="body">
        <Facts rows={rows} />
      </div>
    </Card>
  );
}
