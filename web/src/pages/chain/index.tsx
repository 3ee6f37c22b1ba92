/** A chain: its definition and last runs, or one of its runs. */
import { useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { attempt } from '../../lib/feedback';
import { t, tn } from '../../lib/i18n';
import { pause, remove, resume } from '../../lib/job_actions';
import { useKey } from '../../lib/keys';
import { useResource } from '../../lib/resource';
import { href, navigate, param, setQuery } from '../../lib/router';
import type { Job, Run } from '../../lib/types';
import { Act } from '../../ui/act';
import { Card, Menu, PageHead, Tabs } from '../../ui/controls';
import { Empty, Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { Paused } from '../../ui/paused';
import { JsonDialog } from '../../ui/json_dialog';
import { ScheduleText, zoneOf } from '../../ui/schedule';
import { EditChain, NewChain } from './editor';
import { Graph } from './graph';
import { RunGrid } from './grid';
import { ChainRun } from './run';
import type { Layout } from './types';

export function ChainPage({ id, rid }: { id: string; rid?: string }) {
  if (id === 'new') return <NewChain />;
  return rid ? <ChainRun id={Number(id)} rid={Number(rid)} /> : <Chain id={Number(id)} />;
}

async function start(job: Job, params?: unknown): Promise<void> {
  const run = await api.post<Run>(`jobs/${job.id}/runs`, params === undefined ? undefined : { input: params });
  navigate(href(`/chains/${job.id}/runs/${run.id}`));
}

function Chain({ id }: { id: number }) {
  const job = useResource<Job>((abort) => api.get(`jobs/${id}`, {}, abort), [id], {
    live: ['job'],
    wants: (event) => event.id === id,
  });
  const { data } = job;
  const trail = [{ href: href('/chains'), text: t('nav.chains') }];
  if (!data) {
    return (
      <>
        <PageHead title={t('chain.title', { id })} trail={trail} />
        <Pending {...job} />
      </>
    );
  }
  if (data.target.kind !== 'chain') {
    return (
      <>
        <PageHead title={data.name} trail={trail} />
        <Empty title={t('chain.is_none')}>
          <a href={href(`/jobs/${id}`)}>{t('chain.as_job')}</a>
        </Empty>
      </>
    );
  }
  return <Defined job={data} refresh={job.refresh} set={job.set} trail={trail} />;
}

interface Props {
  job: Job;
  refresh: () => void;
  set: (job: Job) => void;
  trail: { href: string; text: string }[];
}

function Defined({ job, refresh, set, trail }: Props) {
  const tab = param('tab') === 'definition' ? 'definition' : 'graph';
  const [isStarting, setStarting] = useState(false);
  const then = (done: Promise<boolean>): void => void done.then((isDone) => isDone && refresh());
  const erase = async (): Promise<void> => {
    if (await remove(job)) navigate(href('/chains'));
  };
  const begin = (): void => void attempt(() => start(job));
  const mayStart = job.enabled && !readOnly.value;
  useKey('s', 'key.start', begin, mayStart);
  const side = (
    <>
      <Act text={t('chain.start')} icon="play" kind="primary" disabled={!mayStart} title={t('chain.start_key')} onClick={begin} />
      <Act text={t('chain.start_with')} icon="edit" disabled={!mayStart} onClick={() => setStarting(true)} />
      {job.enabled ? (
        <Act text={t('act.pause')} icon="pause" onClick={() => then(pause(job))} />
      ) : (
        <Act text={t('act.resume')} icon="play" onClick={() => then(resume(job))} />
      )}
      <Menu
        label={t('act.more')}
        items={[
          { text: t('chain.as_job'), icon: 'right', onClick: () => navigate(href(`/jobs/${job.id}`)) },
          { text: t('chain.all_runs'), icon: 'right', onClick: () => navigate(href('/runs', { job_id: job.id, range: 'all' })) },
          ...(readOnly.value ? [] : [{ text: t('act.delete'), icon: 'trash' as const, isDangerous: true, onClick: () => void erase() }]),
        ]}
      />
    </>
  );
  return (
    <>
      <PageHead title={job.name} trail={trail} side={side}>
        <div class="meta">
          <Paused job={job} />
          <span>{t('chain.version', { n: job.version })}</span>
          <ScheduleText job={job} />
          {job.next_fire_at && (
            <span>
              {t('jobs.next')} <Instant at={job.next_fire_at} zone={zoneOf(job.schedule)} short />
            </span>
          )}
          {job.description && <span>{job.description}</span>}
        </div>
      </PageHead>
      <Tabs
        label={job.name}
        value={tab}
        tabs={[
          { key: 'graph', text: t('chain.graph') },
          { key: 'definition', text: t('chain.definition') },
        ]}
        onChange={(key) => setQuery({ tab: key === 'graph' ? null : key })}
      />
      <div class="stack" role="tabpanel" aria-label={tab === 'graph' ? t('chain.graph') : t('chain.definition')}>
        {tab === 'definition' ? <EditChain job={job} onSaved={set} /> : <Pictures job={job} />}
      </div>
      {isStarting && (
        <JsonDialog
          title={t('chain.start_title', { name: job.name })}
          label={t('chain.params')}
          hint={t('chain.params_hint')}
          value={job.target.config.params ?? {}}
          act={t('chain.start')}
          onClose={() => setStarting(false)}
          send={(params) => start(job, params)}
        />
      )}
    </>
  );
}

function Pictures({ job }: { job: Job }) {
  const layout = useResource<Layout>((abort) => api.get(`jobs/${job.id}/layout`, {}, abort), [job.id, job.version]);
  return (
    <>
      <Card title={t('chain.graph')} side={layout.data && <span class="muted">{tn('chain.nodes', layout.data.nodes.length)}</span>}>
        {layout.data ? <Graph layout={layout.data} /> : <Pending {...layout} />}
      </Card>
      <Card title={t('chain.grid')}>
        <RunGrid job={job.id} />
      </Card>
    </>
  );
}
