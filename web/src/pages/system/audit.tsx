/** Who changed what, when and why, with what there was before and after. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { changesOf } from '../../lib/changes';
import { t, word } from '../../lib/i18n';
import { useResource, useRested } from '../../lib/resource';
import { href, param, setQuery } from '../../lib/router';
import type { AuditEntry, Page } from '../../lib/types';
import { Diff, Json } from '../../ui/code';
import { Card, Facts, Select } from '../../ui/controls';
import { Dialog, Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { pageParams, Paging, Table } from '../../ui/table';

const SUBJECTS = ['job', 'run', 'backfill', 'queue', 'object', 'key'];

/** Where the subject of an entry is shown, if it is. */
function placeOf(entry: AuditEntry): string | undefined {
  const { subject, subject_id: id } = entry;
  if (subject === 'job' || subject === 'backfill') return href(`/jobs/${id}`);
  if (subject === 'run') return href(`/runs/${id}`);
  if (subject === 'queue') return href('/queues', { queue: id });
  return subject === 'object' ? href('/queues', { show: 'objects' }) : undefined;
}

const nameOf = (entry: AuditEntry): string => {
  const name = ((entry.after ?? entry.before) as { name?: unknown } | null)?.name;
  return typeof name === 'string' ? name : entry.subject_id;
};

export function Audit() {
  const actor = useRested(param('actor'));
  const query = { subject: param('subject'), actor, ...pageParams() };
  const audit = useResource<Page<AuditEntry>>((abort) => api.get('audit', query, abort), [query], { live: ['job', 'operation'], pace: 3000 });
  const [open, setOpen] = useState<AuditEntry | null>(null);
  return (
    <Card>
      <div class="filters" role="search">
        <Select
          label={t('sys.subject')}
          bare
          value={param('subject')}
          options={[{ value: '', text: t('sys.any_subject') }, ...SUBJECTS.map((value) => ({ value, text: word('sys.subject', value) }))]}
          onChange={(subject) => setQuery({ subject })}
        />
        <input
          class="search"
          type="search"
          aria-label={t('sys.actor')}
          placeholder={t('sys.actor')}
          value={param('actor')}
          onInput={(event) => setQuery({ actor: event.currentTarget.value })}
        />
      </div>
      <Table
        label={t('sys.audit')}
        columns={[
          { key: 'at', title: t('sys.at'), show: (entry) => <Instant at={entry.at} short /> },
          { key: 'actor', title: t('sys.actor'), show: (entry) => entry.actor },
          {
            key: 'action',
            title: t('sys.action'),
            show: (entry) => (
              <button type="button" class="link" onClick={() => setOpen(entry)}>
                {word('audit', entry.action)}
              </button>
            ),
          },
          {
            key: 'subject',
            title: t('sys.subject'),
            show: (entry) => {
              const place = placeOf(entry);
              const name = `${word('sys.subject', entry.subject)} ${nameOf(entry)}`;
              return place ? <a href={place}>{name}</a> : name;
            },
          },
          { key: 'reason', title: t('sys.reason'), minor: true, show: (entry) => entry.reason || <span class="muted">–</span> },
        ]}
        rows={audit.data?.items}
        rowKey={(entry) => entry.id}
        error={audit.error}
        isLoading={audit.isLoading}
        refresh={audit.refresh}
        empty={<Empty title={t('sys.no_audit')} text={t('sys.no_audit_text')} />}
      />
      {audit.data && audit.data.total > 0 && <Paging {...audit.data} />}
      {open && (
        <Dialog title={`${word('audit', open.action)} · ${nameOf(open)}`} onClose={() => setOpen(null)} size="wide">
          <div class="dialog-body">
            <Facts
              rows={[
                [t('sys.at'), <Instant at={open.at} />],
                [t('sys.actor'), open.actor],
                [t('sys.reason'), open.reason || '–'],
                ...(open.request_id ? ([[t('sys.request'), <code>{open.request_id}</code>]] as [string, preact.ComponentChildren][]) : []),
              ]}
            />
            <Changed entry={open} />
          </div>
        </Dialog>
      )}
    </Card>
  );
}

/** Before beside after; what was made or taken away is shown as a whole. */
function Changed({ entry }: { entry: AuditEntry }) {
  const { before, after } = entry;
  if (before === null && after === null) return null;
  if (before === null) return <Json value={after} label={t('diff.after')} />;
  if (after === null) return <Json value={before} label={t('diff.before')} />;
  return <Diff changes={changesOf(before, after)} left={t('diff.before')} right={t('diff.after')} />;
}
