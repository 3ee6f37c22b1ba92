/** Objects that items are about: what is known of them, which gates hold them back, and what became of them. */
import { useState } from 'preact/hooks';
import { api, ApiError, type Problem } from '../../lib/api';
import { say, sayError } from '../../lib/feedback';
import { number, t, word } from '../../lib/i18n';
import { changesOf } from '../../lib/changes';
import { useResource } from '../../lib/resource';
import { param, setQuery } from '../../lib/router';
import type { Page } from '../../lib/types';
import { Act } from '../../ui/act';
import { Diff, Json } from '../../ui/code';
import { Button, Card, Chip, Select, TextField } from '../../ui/controls';
import { Dialog, Empty, Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { pageParams, Paging, Table } from '../../ui/table';
import { OBJECT_TYPES } from './enqueue';
import type { GovernedObject, ObjectChange } from './types';

const RISKS = ['low', 'medium', 'high'];
const EPISTEMIC = ['unassessed', 'uncertain', 'supported', 'refuted', 'archived'];
const GATES = ['pass', 'limit', 'defer', 'block'];

const path = (object: GovernedObject): string => `/scheduler/objects/${object.object_type}/${encodeURIComponent(object.object_id)}`;

export function Objects() {
  const filter = { object_type: param('object_type'), risk_tier: param('risk_tier'), epistemic_state: param('epistemic_state') };
  const query = { ...filter, ...pageParams() };
  const objects = useResource<Page<GovernedObject>>((abort) => api.get('/scheduler/objects', query, abort), [query], {
    live: ['run'],
    wants: (event) => event.patch?.kind === 'item',
    pace: 3000,
  });
  const [open, setOpen] = useState<GovernedObject | null>(null);
  const choice = (name: string, label: string, values: string[], prefix: string) => (
    <Select
      label={label}
      bare
      value={param(name)}
      options={[{ value: '', text: t('queue.any_of', { what: label }) }, ...values.map((value) => ({ value, text: word(prefix, value) }))]}
      onChange={(value) => setQuery({ [name]: value })}
    />
  );
  return (
    <Card>
      <div class="filters" role="search">
        {choice('object_type', t('queue.object_type'), OBJECT_TYPES, 'object')}
        {choice('risk_tier', t('queue.risk'), RISKS, 'risk')}
        {choice('epistemic_state', t('queue.epistemic'), EPISTEMIC, 'epistemic')}
      </div>
      <Table
        label={t('queue.view_objects')}
        columns={[
          {
            key: 'object',
            title: t('queue.object'),
            show: (object) => (
              <button type="button" class="link strong" onClick={() => setOpen(object)}>
                {object.object_type}/{object.object_id}
              </button>
            ),
          },
          { key: 'risk', title: t('queue.risk'), show: (object) => word('risk', object.risk_tier) },
          { key: 'epistemic', title: t('queue.epistemic'), show: (object) => word('epistemic', object.epistemic_state) },
          {
            key: 'gates',
            title: t('queue.gates'),
            show: (object) => (
              <span class="chips">
                {Object.entries(object.gates).map(([gate, said]) => (
                  <Chip key={gate} text={`${word('gate_name', gate)}: ${word('gate', said)}`} tone={said === 'pass' ? 'plain' : 'warn'} />
                ))}
                {object.held_back && <Chip text={t('queue.held_back')} tone="bad" />}
              </span>
            ),
          },
          {
            key: 'budget',
            title: t('queue.budget'),
            align: 'right',
            minor: true,
            show: (object) => t('queue.of', { n: number(object.verify_count), most: number(object.auto_verify_budget) }),
          },
          { key: 'next', title: t('queue.next_action'), minor: true, show: (object) => <Instant at={object.next_action_at} short /> },
        ]}
        rows={objects.data?.items}
        rowKey={(object) => `${object.object_type}/${object.object_id}`}
        error={objects.error}
        isLoading={objects.isLoading}
        refresh={objects.refresh}
        empty={<Empty title={t('queue.no_objects')} text={t('queue.no_objects_text')} />}
      />
      {objects.data && objects.data.total > 0 && <Paging {...objects.data} />}
      {open && <ObjectDialog object={open} onClose={() => setOpen(null)} onDone={objects.refresh} />}
    </Card>
  );
}

function ObjectDialog({ object, onClose, onDone }: { object: GovernedObject; onClose: () => void; onDone: () => void }) {
  const [draft, setDraft] = useState({
    risk_tier: object.risk_tier,
    persona: object.gates.persona ?? 'pass',
    cognition: object.gates.cognition ?? 'pass',
    budget: String(object.auto_verify_budget),
    reason: '',
  });
  const [problems, setProblems] = useState<Problem[]>([]);
  const set = (name: keyof typeof draft) => (value: string): void => setDraft({ ...draft, [name]: value });
  const options = (values: string[], prefix: string) => values.map((value) => ({ value, text: word(prefix, value) }));
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await api.put(path(object), {
        risk_tier: draft.risk_tier,
        gates: { persona: draft.persona, cognition: draft.cognition },
        auto_verify_budget: Number(draft.budget) || 0,
        reason: draft.reason.trim(),
        version: object.version,
      });
      say(t('done.saved'));
      onDone();
      onClose();
    } catch (error) {
      const found = error instanceof ApiError ? error.problems : [];
      setProblems(found);
      if (!found.length) sayError(error);
    }
  };
  return (
    <Dialog title={`${object.object_type}/${object.object_id}`} onClose={onClose} size="wide">
      <form onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">
          <div class="form">
            <Select label={t('gate_name.persona')} value={draft.persona} options={options(GATES, 'gate')} onChange={set('persona')} />
            <Select label={t('gate_name.cognition')} value={draft.cognition} options={options(GATES, 'gate')} onChange={set('cognition')} />
            <Select label={t('queue.risk')} value={draft.risk_tier} options={options(RISKS, 'risk')} onChange={set('risk_tier')} />
            <TextField
              label={t('queue.budget_allowed')}
              type="number"
              value={draft.budget}
              error={problems.find((problem) => problem.field === 'auto_verify_budget')?.message}
              onInput={set('budget')}
            />
          </div>
          <TextField label={t('ask.reason')} value={draft.reason} onInput={set('reason')} />
          {Object.keys(object.attributes).length > 0 && <Json value={object.attributes} label={t('queue.attributes')} />}
          <h3>{t('queue.changes')}</h3>
          <Changes object={object} />
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Act text={t('act.save')} kind="primary" submit />
        </footer>
      </form>
    </Dialog>
  );
}

function Changes({ object }: { object: GovernedObject }) {
  const query = { object_type: object.object_type, object_id: object.object_id, page_size: 20 };
  const changes = useResource<Page<ObjectChange>>((abort) => api.get('/scheduler/audit', query, abort), [query]);
  if (!changes.data) return <Pending {...changes} />;
  if (!changes.data.items.length) return <p class="muted">{t('queue.no_changes')}</p>;
  return (
    <ul class="stack">
      {changes.data.items.map((change) => (
        <li key={change.id}>
          <details>
            <summary>
              <Instant at={change.at} short /> {change.actor} · {word('audit', change.action)}
              {change.reason && ` · ${change.reason}`}
            </summary>
            <Diff changes={changesOf(change.before, change.after)} left={t('diff.before')} right={t('diff.after')} />
          </details>
        </li>
      ))}
    </ul>
  );
}
