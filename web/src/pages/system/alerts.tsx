/** Who was told of which failed run, and whom nobody could reach. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { number, t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href, param, setQuery } from '../../lib/router';
import type { Page } from '../../lib/types';
import { Json } from '../../ui/code';
import { Card, Chip, Select } from '../../ui/controls';
import { Dialog, Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { firstLine } from '../../ui/run_line';
import { pageParams, Paging, Table } from '../../ui/table';
import type { Alert } from './types';

const STATES = ['pending', 'delivered', 'failed'];

export function Alerts() {
  const query = { state: param('state'), ...pageParams() };
  const alerts = useResource<Page<Alert>>((abort) => api.get('alerts', query, abort), [query], { live: ['run'], pace: 5000 });
  const [open, setOpen] = useState<Alert | null>(null);
  return (
    <Card>
      <div class="filters" role="search">
        <Select
          label={t('runs.state')}
          bare
          value={param('state')}
          options={[{ value: '', text: t('queue.any_status') }, ...STATES.map((value) => ({ value, text: word('alert', value) }))]}
          onChange={(state) => setQuery({ state })}
        />
      </div>
      <Table
        label={t('sys.alerts')}
        columns={[
          { key: 'state', title: t('runs.state'), show: (alert) => <Chip text={word('alert', alert.state)} tone={toneOf(alert.state)} /> },
          { key: 'run', title: t('fires.run'), show: (alert) => <a href={href(`/runs/${alert.run_id}`)}>{t('run.title', { id: alert.run_id })}</a> },
          {
            key: 'hook',
            title: t('sys.hook'),
            show: (alert) => (
              <button type="button" class="link" onClick={() => setOpen(alert)}>
                {alert.hook}
              </button>
            ),
          },
          { key: 'attempts', title: t('runs.attempts'), align: 'right', minor: true, show: (alert) => number(alert.attempts) },
          { key: 'at', title: t('sys.at'), show: (alert) => <Instant at={alert.ended_at ?? alert.due_at ?? alert.created_at} short /> },
          { key: 'error', title: t('runs.error_text'), minor: true, show: (alert) => <span class="clip">{firstLine(alert.error)}</span> },
        ]}
        rows={alerts.data?.items}
        rowKey={(alert) => alert.id}
        error={alerts.error}
        isLoading={alerts.isLoading}
        refresh={alerts.refresh}
        empty={<Empty title={t('sys.no_alerts')} text={t('sys.no_alerts_text')} />}
      />
      {alerts.data && alerts.data.total > 0 && <Paging {...alerts.data} />}
      {open && (
        <Dialog title={open.hook} onClose={() => setOpen(null)} size="wide">
          <div class="dialog-body">
            {open.error && <pre class="trouble bad">{open.error}</pre>}
            <Json value={open.payload} label={t('queue.payload')} />
          </div>
        </Dialog>
      )}
    </Card>
  );
}

const toneOf = (state: string): 'good' | 'bad' | 'warn' => (state === 'delivered' ? 'good' : state === 'failed' ? 'bad' : 'warn');
