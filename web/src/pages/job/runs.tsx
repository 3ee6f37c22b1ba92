/** The runs of a job. */
import { api } from '../../lib/api';
import { t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href, params, setQuery } from '../../lib/router';
import { STATES } from '../../lib/states';
import { span } from '../../lib/time';
import type { Job, Page, Run } from '../../lib/types';
import { Button, Card, Select } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { firstLine } from '../../ui/run_line';
import { zoneOf } from '../../ui/schedule';
import { StateBadge } from '../../ui/state';
import { pageParams, Paging, Table, type Column } from '../../ui/table';

export function JobRuns({ job }: { job: Job }) {
  const states = params('state');
  const query = { state: states, ...pageParams() };
  const runs = useResource<Page<Run>>((abort) => api.get(`jobs/${job.id}/runs`, query, abort), [job.id, query], {
    live: ['run'],
    wants: (event) => event.patch?.job_id === job.id,
  });
  const zone = zoneOf(job.schedule);
  const columns: Column<Run>[] = [
    { key: 'state', title: t('runs.state'), show: (run) => <StateBadge state={run.state} reason={run.reason} /> },
    {
      key: 'planned',
      title: t('runs.planned'),
      show: (run) => (
        <a href={href(`/runs/${run.id}`)}>
          <Instant at={run.planned_at} zone={zone} short />
        </a>
      ),
    },
    { key: 'delay', title: t('runs.delay'), align: 'right', minor: true, show: (run) => span(delay(run)) },
    { key: 'took', title: t('runs.took'), align: 'right', show: (run) => span(run.duration_ms) },
    { key: 'attempts', title: t('runs.attempts'), align: 'right', minor: true, show: (run) => run.attempt },
    { key: 'trigger', title: t('runs.trigger'), minor: true, show: (run) => word('trigger', run.trigger) },
    {
      key: 'error',
      title: t('runs.error'),
      minor: true,
      show: (run) => (
        <a class="clip" href={href(`/runs/${run.id}`)} title={run.error}>
          {firstLine(run.error)}
        </a>
      ),
    },
  ];
  return (
    <Card>
      <div class="filters">
        <Select
          label={t('runs.state')}
          bare
          value={states[0] ?? ''}
          options={[{ value: '', text: t('runs.any_state') }, ...STATES.map((value) => ({ value, text: word('state', value) }))]}
          onChange={(state) => setQuery({ state })}
        />
        <span class="grow" />
        <Button text={t('job.all_runs')} quiet href={href('/runs', { job_id: job.id })} />
      </div>
      <Table
        label={t('nav.runs')}
        columns={columns}
        rows={runs.data?.items}
        rowKey={(run) => run.id}
        href={(run) => href(`/runs/${run.id}`)}
        error={runs.error}
        isLoading={runs.isLoading}
        refresh={runs.refresh}
        empty={<Empty title={t('job.no_runs')} text={t('job.no_runs_text')} />}
      />
      {runs.data && runs.data.total > 0 && <Paging {...runs.data} />}
    </Card>
  );
}

/** How late it began; null while it has not. */
const delay = (run: Run): number | null => (run.started_at ? Math.max(0, Date.parse(run.started_at) - Date.parse(run.planned_at)) : null);
