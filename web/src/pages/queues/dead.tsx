/** Dead letters, by what they died of; put back a group, some, or one. */
import { useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { number, t, tn } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import type { Operation, Page } from '../../lib/types';
import { Act } from '../../ui/act';
import { OperationBar, useOperation, type OperationInput } from '../../ui/bulk';
import { Button, Card, TextField } from '../../ui/controls';
import { Dialog, Empty, Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { firstLine } from '../../ui/run_line';
import { StateMark } from '../../ui/state';
import { pageParams, Paging, Table, type Column } from '../../ui/table';
import { itemColumns, Peek } from './items';
import { runOf, type DeadGroup, type Item } from './types';

type Subject = Pick<OperationInput, 'ids' | 'filter'>;

export function DeadLetters({ queue }: { queue: string }) {
  const live = { live: ['run' as const], wants: isOfItem, pace: 2000 };
  const groups = useResource<{ groups: DeadGroup[] }>((abort) => api.get('/scheduler/dead-letters/groups', { queue }, abort), [queue], live);
  const paging = pageParams();
  const items = useResource<Page<Item>>((abort) => api.get('/scheduler/dead-letters', { queue, ...paging }, abort), [queue, paging], live);
  const [selected, setSelected] = useState<Set<number | string>>(new Set());
  const [subject, setSubject] = useState<Subject | null>(null);
  const [peeked, setPeeked] = useState<string | null>(null);
  const operation = useOperation(() => {
    setSelected(new Set());
    groups.refresh();
    items.refresh();
  });
  const none = <Empty title={t('queue.no_dead')} text={t('queue.no_dead_text')} />;
  return (
    <>
      <OperationBar {...operation} />
      <Card title={t('queue.groups')}>
        <Table
          label={t('queue.groups')}
          hasKeys={false}
          columns={groupColumns((group) => setSubject({ filter: { queue: group.queue, error: group.error, children: true } }))}
          rows={groups.data?.groups}
          rowKey={(group) => `${group.queue} ${group.error}`}
          error={groups.error}
          isLoading={groups.isLoading}
          refresh={groups.refresh}
          empty={none}
        />
      </Card>
      {items.data && items.data.total > 0 && (
        <Card title={t('queue.view_dead')}>
          {selected.size > 0 && (
            <div class="bulk" role="region" aria-label={t('bulk.label')}>
              <strong>{tn('bulk.selected', selected.size)}</strong>
              <span class="grow" />
              <Act
                text={t('queue.redrive')}
                icon="retry"
                kind="primary"
                onClick={() => setSubject({ ids: [...selected].map((id) => runOf(String(id))) })}
              />
            </div>
          )}
          <Table
            label={t('queue.view_dead')}
            columns={itemColumns(setPeeked)}
            rows={items.data.items}
            rowKey={(item) => item.job_id}
            selected={selected}
            onSelect={readOnly.value ? undefined : setSelected}
            error={items.error}
            isLoading={items.isLoading}
            refresh={items.refresh}
            empty={none}
          />
          <Paging {...items.data} />
        </Card>
      )}
      {subject && (
        <Redrive
          subject={subject}
          onClose={() => setSubject(null)}
          onGo={(rate) => {
            setSubject(null);
            void operation.begin({ action: 'redrive', ...subject, ...(rate ? { rate } : {}) });
          }}
        />
      )}
      {peeked && <Peek id={peeked} onClose={() => setPeeked(null)} />}
    </>
  );
}

const isOfItem = (event: { patch?: Record<string, unknown> }): boolean => event.patch?.kind === 'item';

function groupColumns(redrive: (group: DeadGroup) => void): Column<DeadGroup>[] {
  return [
    {
      key: 'error',
      title: t('runs.error_text'),
      show: (group) => (
        <span class="line">
          <StateMark state="DEAD_LETTER" />
          <span class="clip strong" title={group.error}>
            {firstLine(group.error) || t('queue.no_error')}
          </span>
        </span>
      ),
    },
    { key: 'queue', title: t('form.queue'), show: (group) => group.queue },
    { key: 'count', title: t('queue.count'), align: 'right', show: (group) => number(group.count) },
    { key: 'first', title: t('queue.first'), minor: true, show: (group) => <Instant at={group.first_at} short /> },
    { key: 'last', title: t('queue.last'), minor: true, show: (group) => <Instant at={group.last_at} short /> },
    {
      key: 'act',
      title: '',
      align: 'right',
      show: (group) => <Act text={t('queue.redrive')} icon="retry" onClick={() => redrive(group)} />,
    },
  ];
}

/** Shows what would be put back, before it is. */
function Redrive({ subject, onClose, onGo }: { subject: Subject; onClose: () => void; onGo: (rate: number) => void }) {
  const [rate, setRate] = useState('');
  const tried = useResource<Operation>(() => api.post('operations', { action: 'redrive', ...subject, dry_run: true }), [subject]);
  return (
    <Dialog title={t('queue.redrive_title')} onClose={onClose}>
      {!tried.data ? (
        <Pending {...tried} />
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onGo(Number(rate) || 0);
          }}
        >
          <div class="dialog-body">
            <p>{tn('queue.would_redrive', tried.data.total)}</p>
            <p class="muted">{t('queue.redrive_what')}</p>
            {tried.data.sample.length > 0 && (
              <ul class="chips">
                {tried.data.sample.map((each) => (
                  <li key={each.id} class="chip">
                    {`job_${each.id}`}
                  </li>
                ))}
                {tried.data.total > tried.data.sample.length && <li class="chip">…</li>}
              </ul>
            )}
            <TextField label={t('queue.per_second')} hint={t('queue.per_second_hint')} type="number" value={rate} onInput={setRate} />
          </div>
          <footer>
            <Button text={t('act.cancel')} onClick={onClose} />
            <Button text={tn('queue.redrive_n', tried.data.total)} kind="primary" submit disabled={!tried.data.total} />
          </footer>
        </form>
      )}
    </Dialog>
  );
}
