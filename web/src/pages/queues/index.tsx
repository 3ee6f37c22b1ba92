/** Queues that workers pull from: how they stand, what is in them, what died in them, who works on them. */
import { useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { ask, attempt } from '../../lib/feedback';
import { number, t } from '../../lib/i18n';
import { reasoned } from '../../lib/job_actions';
import { useResource } from '../../lib/resource';
import { href, param, setQuery } from '../../lib/router';
import { span } from '../../lib/time';
import { Act } from '../../ui/act';
import { OperationBar, useOperation } from '../../ui/bulk';
import { Button, Card, Chip, Menu, PageHead, Tabs } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Table, type Column } from '../../ui/table';
import { DeadLetters } from './dead';
import { Enqueue } from './enqueue';
import { Items } from './items';
import { Limits } from './limits';
import { Objects } from './objects';
import { Purge } from './purge';
import type { Queue } from './types';
import { Workers } from './workers';

const VIEWS = ['items', 'dead', 'workers', 'objects'] as const;

export function QueuesPage() {
  const queues = useResource<{ items: Queue[] }>((abort) => api.get('queues', {}, abort), [], { live: ['queue', 'run'], pace: 2000 });
  const [isEnqueuing, setEnqueuing] = useState(false);
  const [limited, setLimited] = useState<string | null>(null);
  const [purged, setPurged] = useState<string | null>(null);
  const operation = useOperation(queues.refresh);
  const view = VIEWS.find((each) => each === param('show')) ?? 'items';
  const queue = param('queue');
  const items = queues.data?.items;
  const dead = (items ?? []).filter((each) => !queue || each.queue === queue).reduce((sum, each) => sum + each.dead_letters, 0);
  return (
    <>
      <PageHead
        title={t('nav.queues')}
        side={<Act text={t('queue.enqueue')} icon="plus" kind="primary" onClick={() => setEnqueuing(true)} />}
      />
      <OperationBar {...operation} />
      <Card>
        <Table
          label={t('nav.queues')}
          hasKeys={false}
          columns={columns(queues.refresh, setLimited, setPurged)}
          rows={items}
          rowKey={(each) => each.queue}
          error={queues.error}
          isLoading={queues.isLoading}
          refresh={queues.refresh}
          empty={<Empty title={t('queue.none')} text={t('queue.none_text')} />}
        />
      </Card>
      <div class="line">
        <Tabs
          label={t('queue.views')}
          value={view}
          tabs={VIEWS.map((key) => ({ key, text: t(`queue.view_${key}`), ...(key === 'dead' && dead ? { count: dead } : {}) }))}
          onChange={(key) => setQuery({ show: key === 'items' ? null : key, status: null })}
        />
        {queue && <Button text={t('queue.only', { name: queue })} icon="close" onClick={() => setQuery({ queue: null })} />}
      </div>
      <div role="tabpanel" class="stack" aria-label={t(`queue.view_${view}`)}>
        {view === 'items' && <Items queue={queue} />}
        {view === 'dead' && <DeadLetters queue={queue} />}
        {view === 'workers' && <Workers queues={items} queue={queue} />}
        {view === 'objects' && <Objects />}
      </div>
      {isEnqueuing && <Enqueue queue={queue} onClose={() => setEnqueuing(false)} onDone={queues.refresh} />}
      {limited !== null && <Limits queue={limited} onClose={() => setLimited(null)} onDone={queues.refresh} />}
      {purged !== null && (
        <Purge
          queue={purged}
          onClose={() => setPurged(null)}
          onGo={(input) => {
            setPurged(null);
            void operation.begin(input);
          }}
        />
      )}
    </>
  );
}

type Open = (queue: string) => void;

function columns(refresh: () => void, limit: Open, purge: Open): Column<Queue>[] {
  return [
    {
      key: 'queue',
      title: t('form.queue'),
      show: (queue) => (
        <>
          <a class="strong" href={href('/queues', { queue: queue.queue, show: param('show') })}>
            {queue.queue}
          </a>{' '}
          {queue.paused && <Chip text={t('state.paused')} tone="warn" title={queue.reason} />}
          {queue.paused && queue.reason && <span class="sub"> {queue.reason}</span>}
        </>
      ),
    },
    { key: 'due', title: t('queue.due'), align: 'right', show: (queue) => number(queue.due) },
    { key: 'lag', title: t('queue.lag'), align: 'right', show: (queue) => <Lag queue={queue} /> },
    { key: 'held', title: t('queue.held'), align: 'right', show: (queue) => number(queue.held) },
    { key: 'queued', title: t('queue.waiting'), align: 'right', minor: true, show: (queue) => number(queue.queued) },
    {
      key: 'dead',
      title: t('queue.dead'),
      align: 'right',
      show: (queue) =>
        queue.dead_letters ? <a href={href('/queues', { queue: queue.queue, show: 'dead' })}>{number(queue.dead_letters)}</a> : '0',
    },
    { key: 'limits', title: t('queue.limits'), minor: true, show: (queue) => <LimitWords queue={queue} /> },
    { key: 'acts', title: '', align: 'right', show: (queue) => <RowMenu {...{ queue, refresh, limit, purge }} /> },
  ];
}

const LATE_SECONDS = 60;

/** How long the oldest item that is due has waited; a queue nobody pulls from shows by it. */
function Lag({ queue }: { queue: Queue }) {
  if (!queue.due) return <span class="muted">–</span>;
  const text = span(queue.lag_seconds * 1000);
  return queue.lag_seconds > LATE_SECONDS && !queue.paused ? <Chip text={text} tone="warn" title={t('queue.late')} /> : <span class="nowrap">{text}</span>;
}

function LimitWords({ queue }: { queue: Queue }) {
  const { limits } = queue;
  if (!limits) return <span class="muted">{t('queue.no_limits')}</span>;
  const said = [
    limits.concurrency !== null && t('queue.at_once', { n: number(limits.concurrency) }),
    limits.rate && t('queue.rate_of', { n: number(limits.rate.count), per: limits.rate.per }),
    limits.key_concurrency !== null && t('queue.key_at_once', { n: number(limits.key_concurrency) }),
    limits.key_rate && t('queue.key_rate_of', { n: number(limits.key_rate.count), per: limits.key_rate.per }),
  ];
  return <span>{said.filter(Boolean).join(' · ')}</span>;
}

function RowMenu({ queue, refresh, limit, purge }: { queue: Queue; refresh: () => void; limit: Open; purge: Open }) {
  if (readOnly.value) return null;
  const path = `/scheduler/queues/${encodeURIComponent(queue.queue)}`;
  const pause = async (): Promise<void> => {
    const answer = await ask({ title: t('queue.ask_pause', { name: queue.queue }), body: t('queue.what_pause'), act: t('act.pause'), wantsReason: true });
    if (answer && (await attempt(() => api.post(`${path}/pause`, reasoned(answer.reason) ?? {}), t('done.paused', { name: queue.queue })))) refresh();
  };
  const resume = async (): Promise<void> => {
    if (await attempt(() => api.post(`${path}/resume`, {}), t('done.resumed', { name: queue.queue }))) refresh();
  };
  return (
    <Menu
      label={t('jobs.acts', { name: queue.queue })}
      items={[
        queue.paused
          ? { text: t('act.resume'), icon: 'play', onClick: () => void resume() }
          : { text: t('act.pause'), icon: 'pause', onClick: () => void pause() },
        { text: t('queue.set_limits'), icon: 'edit', onClick: () => limit(queue.queue) },
        { text: t('queue.purge'), icon: 'trash', isDangerous: true, onClick: () => purge(queue.queue) },
      ]}
    />
  );
}
