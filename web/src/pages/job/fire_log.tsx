/** What became of each planned instant: fired, skipped, missed or left out, and why. */
import { api } from '../../lib/api';
import { number, t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href, param, setQuery } from '../../lib/router';
import { nowMs } from '../../lib/time';
import type { Fire, Job } from '../../lib/types';
import { Card, Segments } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { zoneOf } from '../../ui/schedule';
import { StateMark } from '../../ui/state';
import { Table, type Column } from '../../ui/table';

const RANGES: Record<string, number> = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 };
const LIMIT = 500;

export function FireLog({ job }: { job: Job }) {
  const range = RANGES[param('range')] ? param('range') : '24h';
  const fires = useResource<Fire[]>(
    (abort) => api.get(`jobs/${job.id}/fires`, { since: new Date(nowMs() - RANGES[range]! * 3_600_000).toISOString(), limit: LIMIT }, abort),
    [job.id, range],
    { live: ['run'], wants: (event) => event.patch?.job_id === job.id, pace: 2000 },
  );
  const zone = zoneOf(job.schedule);
  const columns: Column<Fire>[] = [
    {
      key: 'decision',
      title: t('fires.decision'),
      show: (fire) => (
        <span class="state">
          <StateMark state={fire.decision === 'fired' ? 'SUCCESS' : fire.decision} title={word('decision', fire.decision)} />
          {word('decision', fire.decision)}
        </span>
      ),
    },
    {
      key: 'instant',
      title: t('runs.planned'),
      show: (fire) =>
        fire.count > 1 ? (
          <>
            <Instant at={fire.from_at} zone={zone} distance={false} /> – <Instant at={fire.to_at} zone={zone} distance={false} />
          </>
        ) : (
          <Instant at={fire.from_at} zone={zone} />
        ),
    },
    { key: 'count', title: t('fires.count'), align: 'right', show: (fire) => number(fire.count) },
    { key: 'reason', title: t('fires.reason'), show: (fire) => (fire.reason ? word('reason', fire.reason) : <span class="muted">–</span>) },
    { key: 'run', title: t('fires.run'), show: (fire) => fire.run_id && <a href={href(`/runs/${fire.run_id}`)}>{t('run.title', { id: fire.run_id })}</a> },
    { key: 'recorded', title: t('fires.recorded'), minor: true, show: (fire) => <Instant at={fire.recorded_at} zone={zone} short distance={false} /> },
  ];
  return (
    <Card
      title={t('job.fires')}
      side={<Segments label={t('timeline.range')} value={range} options={Object.keys(RANGES).map((value) => ({ value, text: value }))} onChange={(value) => setQuery({ range: value })} />}
    >
      <Table
        label={t('job.fires')}
        columns={columns}
        rows={fires.data}
        rowKey={(fire) => `${fire.from_at} ${fire.decision} ${fire.run_id}`}
        href={undefined}
        error={fires.error}
        refresh={fires.refresh}
        empty={<Empty title={t('fires.none')} text={t('fires.none_text')} />}
      />
      {fires.data?.length === LIMIT && <p class="muted pad">{t('fires.more', { n: number(LIMIT) })}</p>}
    </Card>
  );
}
