/** Who did what to a job, when, and why. */
import { api } from '../../lib/api';
import { t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import type { AuditEntry, Job, Page } from '../../lib/types';
import { Card } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { pageParams, Paging, Table, type Column } from '../../ui/table';

export const auditColumns = (): Column<AuditEntry>[] => [
  { key: 'at', title: t('audit.at'), show: (entry) => <Instant at={entry.at} /> },
  { key: 'actor', title: t('audit.actor'), show: (entry) => entry.actor },
  { key: 'action', title: t('audit.action'), show: (entry) => word('audit', entry.action) },
  { key: 'reason', title: t('audit.reason'), show: (entry) => entry.reason || <span class="muted">–</span> },
  { key: 'request', title: t('audit.request'), minor: true, show: (entry) => <code>{entry.request_id ?? '–'}</code> },
];

export function Activity({ job }: { job: Job }) {
  const query = { subject: 'job', subject_id: job.id, ...pageParams() };
  const entries = useResource<Page<AuditEntry>>((abort) => api.get('audit', query, abort), [query], { live: ['job'] });
  return (
    <Card title={t('job.activity')}>
      <Table
        label={t('job.activity')}
        columns={auditColumns()}
        rows={entries.data?.items}
        rowKey={(entry) => entry.id}
        error={entries.error}
        refresh={entries.refresh}
        empty={<Empty title={t('audit.none')} />}
      />
      {entries.data && entries.data.total > 0 && <Paging {...entries.data} />}
    </Card>
  );
}
