/** All chains: when they start, how their last runs went. */
import { Dots } from '../charts/dots';
import { api, readOnly } from '../lib/api';
import { attempt } from '../lib/feedback';
import { number, t } from '../lib/i18n';
import { pause, resume } from '../lib/job_actions';
import { useKey } from '../lib/keys';
import { useResource } from '../lib/resource';
import { href, navigate, param, setQuery } from '../lib/router';
import type { Job, Outcomes, Page, Run } from '../lib/types';
import { Act } from '../ui/act';
import { Card, Menu, PageHead } from '../ui/controls';
import { Empty } from '../ui/feedback';
import { Instant } from '../ui/instant';
import { Paused } from '../ui/paused';
import { ScheduleText, zoneOf } from '../ui/schedule';
import { StateBadge } from '../ui/state';
import { pageParams, Paging, sortParam, Table, type Column } from '../ui/table';

export function ChainsPage() {
  const name = param('name');
  const query = { kind: 'chain', name, sort: sortParam(), ...pageParams() };
  const chains = useResource<Page<Job>>((abort) => api.get('jobs', query, abort), [query], { live: ['job', 'run'], pace: 2000 });
  const ids = chains.data?.items.map((job) => job.id) ?? [];
  const outcomes = useResource<{ items: Outcomes[] }>(ids.length ? (abort) => api.get('jobs/outcomes', { ids: ids.join() }, abort) : null, [ids], {
    live: ['run'],
    pace: 3000,
  });
  useKey('n', 'chain.new', () => navigate(href('/chains/new')), !readOnly.value);
  const create = <Act text={t('chain.new')} icon="plus" kind="primary" href={href('/chains/new')} />;
  return (
    <>
      <PageHead title={t('nav.chains')} side={create} />
      <Card>
        <div class="filters" role="search">
          <input
            class="search"
            type="search"
            aria-label={t('jobs.search')}
            placeholder={t('jobs.search')}
            value={name}
            onInput={(event) => setQuery({ name: event.currentTarget.value })}
          />
        </div>
        <Table
          label={t('nav.chains')}
          columns={columns(new Map((outcomes.data?.items ?? []).map((each) => [each.job_id, each])), chains.refresh)}
          rows={chains.data?.items}
          rowKey={(job) => job.id}
          href={(job) => href(`/chains/${job.id}`)}
          error={chains.error}
          isLoading={chains.isLoading}
          refresh={chains.refresh}
          empty={name ? <Empty title={t('jobs.none_found')} /> : <Empty title={t('chain.none')} text={t('chain.none_text')}>{create}</Empty>}
        />
        {chains.data && chains.data.total > 0 && <Paging {...chains.data} />}
      </Card>
    </>
  );
}

function columns(outcomes: Map<number, Outcomes>, refresh: () => void): Column<Job>[] {
  return [
    {
      key: 'name',
      title: t('jobs.name'),
      sort: 'name',
      show: (job) => (
        <>
          <a class="strong" href={href(`/chains/${job.id}`)}>
            {job.name}
          </a>{' '}
          <Paused job={job} />
          {job.description && <div class="sub clip">{job.description}</div>}
        </>
      ),
    },
    {
      key: 'nodes',
      title: t('chain.node_count'),
      align: 'right',
      minor: true,
      show: (job) => number((job.target.config.nodes as unknown[] | undefined)?.length ?? 0),
    },
    { key: 'schedule', title: t('jobs.schedule'), show: (job) => <ScheduleText job={job} /> },
    {
      key: 'next',
      title: t('jobs.next'),
      sort: 'next_fire_at',
      show: (job) => <Instant at={job.next_fire_at} zone={zoneOf(job.schedule)} short />,
    },
    {
      key: 'last',
      title: t('jobs.last'),
      show: (job) =>
        job.last_run && (
          <a class="plain-link" href={href(`/chains/${job.id}/runs/${job.last_run.id}`)}>
            <StateBadge state={job.last_run.state} />
          </a>
        ),
    },
    { key: 'outcomes', title: t('jobs.outcomes'), minor: true, show: (job) => <Dots outcomes={outcomes.get(job.id)?.last ?? []} /> },
    { key: 'acts', title: '', align: 'right', show: (job) => <RowMenu job={job} refresh={refresh} /> },
  ];
}

function RowMenu({ job, refresh }: { job: Job; refresh: () => void }) {
  if (readOnly.value) return null;
  const then = (done: Promise<boolean>): void => void done.then((isDone) => isDone && refresh());
  const start = async (): Promise<void> => {
    const run = await api.post<Run>(`jobs/${job.id}/runs`);
    navigate(href(`/chains/${job.id}/runs/${run.id}`));
  };
  return (
    <Menu
      label={t('jobs.acts', { name: job.name })}
      items={[
        ...(job.enabled ? [{ text: t('chain.start'), icon: 'play' as const, onClick: () => void attempt(start) }] : []),
        job.enabled
          ? { text: t('act.pause'), icon: 'pause', onClick: () => then(pause(job)) }
          : { text: t('act.resume'), icon: 'play', onClick: () => then(resume(job)) },
        { text: t('chain.definition'), icon: 'edit', onClick: () => navigate(href(`/chains/${job.id}`, { tab: 'definition' })) },
      ]}
    />
  );
}
