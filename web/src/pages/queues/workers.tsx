/** Who holds items now, and until when. */
import { api } from '../../lib/api';
import { number, t } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href } from '../../lib/router';
import { Card } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { Table } from '../../ui/table';
import type { Holder, Queue } from './types';

export function Workers({ queues, queue }: { queues: Queue[] | undefined; queue: string }) {
  const busy = (queues ?? []).filter((each) => (queue ? each.queue === queue : each.held > 0)).map((each) => each.queue);
  const holders = useResource<Holder[]>(queues ? (abort) => holdersOf(busy, abort) : null, [busy], {
    live: ['queue', 'run'],
    pace: 2000,
  });
  return (
    <Card>
      <Table
        label={t('queue.view_workers')}
        columns={[
          {
            key: 'holder',
            title: t('queue.worker'),
            show: (holder) =>
              holder.holder ? (
                <a class="strong" href={href('/queues', { queue: holder.queue, status: 'running', worker_id: holder.holder })}>
                  {holder.holder}
                </a>
              ) : (
                <span class="muted">{t('queue.nameless')}</span>
              ),
          },
          { key: 'queue', title: t('form.queue'), show: (holder) => holder.queue },
          { key: 'items', title: t('queue.held'), align: 'right', show: (holder) => number(holder.items) },
          { key: 'until', title: t('queue.first_lease'), show: (holder) => <Instant at={holder.oldest_until} short /> },
        ]}
        rows={queues ? (holders.data ?? []) : undefined}
        rowKey={(holder) => `${holder.queue} ${holder.holder}`}
        error={holders.error}
        refresh={holders.refresh}
        empty={<Empty title={t('queue.no_workers')} text={t('queue.no_workers_text')} />}
      />
    </Card>
  );
}

async function holdersOf(queues: string[], abort: AbortSignal): Promise<Holder[]> {
  const found = await Promise.all(
    queues.map(async (queue) => {
      const { items } = await api.get<{ items: Omit<Holder, 'queue'>[] }>(`queues/${encodeURIComponent(queue)}/holders`, {}, abort);
      return items.map((holder) => ({ ...holder, queue }));
    }),
  );
  return found.flat();
}
