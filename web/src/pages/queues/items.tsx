/** Items of the queues, and a look into one. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { number, t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href, param, setQuery } from '../../lib/router';
import { Card, Chip, Facts, Select } from '../../ui/controls';
import { Dialog, Empty, Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { Json } from '../../ui/code';
import { firstLine } from '../../ui/run_line';
import { StateBadge } from '../../ui/state';
import { pageParams, Paging, Table, type Column } from '../../ui/table';
import type { Page } from '../../lib/types';
import { ACTIONS, OBJECT_TYPES } from './enqueue';
import { runOf, stateOf, type Item, type ItemDetail } from './types';

const STATUSES = ['queued', 'running', 'succeeded', 'failed', 'dead_letter'];
const FILTERS = ['status', 'object_type', 'action', 'worker_id'] as const;

export function Items({ queue }: { queue: string }) {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, param(name)]).filter(([, value]) => value));
  const query = { queue, ...filter, ...pageParams() };
  const items = useResource<Page<Item>>((abort) => api.get('/scheduler/jobs', query, abort), [query], {
    live: ['run'],
    wants: (event) => event.patch?.kind === 'item',
    pace: 2000,
  });
  const [peeked, setPeeked] = useState<string | null>(null);
  const choice = (name: string, label: string, values: string[], prefix: string, any: string) => (
    <Select
      label={label}
      bare
      value={param(name)}
      options={[{ value: '', text: any }, ...values.map((value) => ({ value, text: word(prefix, value) }))]}
      onChange={(value) => setQuery({ [name]: value })}
    />
  );
  return (
    <Card>
      <div class="filters" role="search">
        {choice('status', t('runs.state'), STATUSES, 'item_status', t('queue.any_status'))}
        {choice('object_type', t('queue.object_type'), OBJECT_TYPES, 'object', t('queue.any_object'))}
        {choice('action', t('queue.action'), ACTIONS, 'action', t('queue.any_action'))}
        <input
          class="search"
          type="search"
          aria-label={t('queue.worker')}
          placeholder={t('queue.worker')}
          value={param('worker_id')}
          onInput={(event) => setQuery({ worker_id: event.currentTarget.value })}
        />
      </div>
      <Table
        label={t('queue.view_items')}
        columns={itemColumns(setPeeked)}
        rows={items.data?.items}
        rowKey={(item) => item.job_id}
        error={items.error}
        isLoading={items.isLoading}
        refresh={items.refresh}
        empty={<Empty title={t('queue.no_items')} text={t('queue.no_items_text')} />}
      />
      {items.data && items.data.total > 0 && <Paging {...items.data} />}
      {peeked && <Peek id={peeked} onClose={() => setPeeked(null)} />}
    </Card>
  );
}

export function itemColumns(peek: (id: string) => void): Column<Item>[] {
  return [
    {
      key: 'item',
      title: t('queue.item'),
      show: (item) => (
        <button type="button" class="link strong" onClick={() => peek(item.job_id)}>
          {item.object_id ? `${word('action', item.action ?? '')} ${item.object_type}/${item.object_id}` : (item.type ?? item.job_id)}
        </button>
      ),
    },
    { key: 'state', title: t('runs.state'), show: (item) => <StateBadge state={stateOf(item.status)} /> },
    { key: 'queue', title: t('form.queue'), minor: true, show: (item) => item.queue },
    { key: 'at', title: t('queue.run_at'), show: (item) => <Instant at={item.run_at} short /> },
    {
      key: 'attempts',
      title: t('queue.failures'),
      align: 'right',
      minor: true,
      show: (item) => t('queue.of', { n: number(item.attempt), most: number(item.max_attempts) }),
    },
    { key: 'priority', title: t('form.priority'), minor: true, show: (item) => word('priority', item.priority) },
    { key: 'worker', title: t('queue.worker'), minor: true, show: (item) => item.worker_id ?? <span class="muted">–</span> },
    {
      key: 'error',
      title: t('runs.run'),
      show: (item) => (
        <a class={item.last_error ? 'clip' : 'muted'} href={href(`/runs/${runOf(item.job_id)}`)} title={item.last_error ?? undefined}>
          {item.last_error ? firstLine(item.last_error) : t('run.title', { id: runOf(item.job_id) })}
        </a>
      ),
    },
  ];
}

export function Peek({ id, onClose }: { id: string; onClose: () => void }) {
  const item = useResource<ItemDetail>((abort) => api.get(`/scheduler/jobs/${id}`, {}, abort), [id], {
    live: ['run'],
    wants: (event) => event.id === runOf(id),
  });
  return (
    <Dialog title={t('queue.item_named', { id })} onClose={onClose} size="wide">
      {!item.data ? <Pending {...item} /> : <Peeked item={item.data} />}
    </Dialog>
  );
}

function Peeked({ item }: { item: ItemDetail }) {
  const rows: [string, preact.ComponentChildren][] = [
    [t('form.queue'), item.queue],
    [t('queue.run_at'), <Instant at={item.run_at} short />],
    [t('queue.failures'), t('queue.of', { n: number(item.attempt), most: number(item.max_attempts) })],
  ];
  if (item.type) rows.push([t('queue.type'), item.type]);
  if (item.group_key) rows.push([t('queue.group_key'), item.group_key]);
  if (item.idempotency_key) rows.push([t('queue.key'), item.idempotency_key]);
  if (item.worker_id) rows.push([t('queue.worker'), item.worker_id]);
  if (item.lease_until) rows.push([t('queue.lease'), <Instant at={item.lease_until} short />]);
  return (
    <div class="dialog-body">
      <div class="line">
        <StateBadge state={stateOf(item.status)} />
        <Chip text={word('priority', item.priority)} />
        <a href={href(`/runs/${runOf(item.job_id)}`)}>{t('queue.open_run')}</a>
      </div>
      {item.last_error && <pre class="trouble bad">{item.last_error}</pre>}
      <Facts rows={rows} />
      <h3>{t('queue.payload')}</h3>
      <Json value={item.payload} label={t('queue.payload')} />
      {item.progress !== null && (
        <>
          <h3>{t('run.progress')}</h3>
          <Json value={item.progress} label={t('run.progress')} />
        </>
      )}
      {item.output !== null && (
        <>
          <h3>{t('run.result')}</h3>
          <Json value={item.output} label={t('run.result')} />
        </>
      )}
    </div>
  );
}
