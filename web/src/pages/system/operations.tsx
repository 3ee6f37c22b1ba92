/** Acts on many at once that this server has begun: how far they are, and what went wrong. */
import { api } from '../../lib/api';
import { attempt } from '../../lib/feedback';
import { number, t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import type { Operation, Page } from '../../lib/types';
import { Act } from '../../ui/act';
import { Card } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { StateBadge } from '../../ui/state';
import { pageParams, Paging, Table } from '../../ui/table';

const STATES: Record<string, string> = { running: 'RUNNING', done: 'SUCCESS', canceled: 'CANCELED' };

export function Operations() {
  const paging = pageParams();
  const operations = useResource<Page<Operation>>((abort) => api.get('operations', paging, abort), [paging], { live: ['operation'] });
  const cancel = async (id: string): Promise<void> => {
    if (await attempt(() => api.post(`operations/${id}/cancel`))) operations.refresh();
  };
  return (
    <Card>
      <Table
        label={t('sys.operations')}
        columns={[
          { key: 'action', title: t('sys.action'), show: (each) => <strong>{word('bulk.action', each.action)}</strong> },
          { key: 'state', title: t('runs.state'), show: (each) => <StateBadge state={STATES[each.state ?? ''] ?? 'RUNNING'} /> },
          {
            key: 'done',
            title: t('sys.done'),
            align: 'right',
            show: (each) => t('queue.of', { n: number(each.done), most: number(each.total) }),
          },
          {
            key: 'failed',
            title: t('queue.failures'),
            align: 'right',
            show: (each) => <span title={each.errors.map((error) => `${error.id}: ${error.message}`).join('\n')}>{number(each.failed)}</span>,
          },
          { key: 'actor', title: t('sys.actor'), minor: true, show: (each) => each.actor },
          { key: 'reason', title: t('sys.reason'), minor: true, show: (each) => each.reason || <span class="muted">–</span> },
          { key: 'at', title: t('sys.started'), show: (each) => <Instant at={each.started_at} short /> },
          {
            key: 'act',
            title: '',
            align: 'right',
            show: (each) =>
              each.state === 'running' &&
              each.id && <Act text={t('act.cancel')} onClick={() => void cancel(each.id!)} />,
          },
        ]}
        rows={operations.data?.items}
        rowKey={(each) => each.id ?? ''}
        error={operations.error}
        isLoading={operations.isLoading}
        refresh={operations.refresh}
        empty={<Empty title={t('sys.no_operations')} text={t('sys.no_operations_text')} />}
      />
      {operations.data && operations.data.total > 0 && <Paging {...operations.data} />}
    </Card>
  );
}
