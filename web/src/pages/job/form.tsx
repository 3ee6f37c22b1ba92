/** The fields of a job. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import type { Draft } from '../../lib/definition';
import { t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { Card, Select, TextField, type Option } from '../../ui/controls';
import type { Faults } from './definition';
import { ScheduleFields } from './schedule_fields';
import { TargetFields } from './target_fields';

export interface PartProps {
  draft: Draft;
  onDraft: (draft: Draft) => void;
  faults: Faults;
}

export function DefinitionForm(props: PartProps) {
  return (
    <>
      <Basics {...props} />
      <ScheduleFields {...props} />
      <TargetFields {...props} />
      <Rules {...props} />
    </>
  );
}

function Basics({ draft, onDraft, faults }: PartProps) {
  const [tags, setTags] = useState((draft.tags ?? []).join(' '));
  return (
    <Card title={t('form.basics')}>
      <div class="body form">
        <TextField label={t('jobs.name')} value={draft.name} onInput={(name) => onDraft({ ...draft, name })} error={faults('name')} required />
        <TextField
          label={t('form.tags')}
          hint={t('form.tags_hint')}
          value={tags}
          onInput={(text) => {
            setTags(text);
            onDraft({ ...draft, tags: text.split(/[\s,，]+/).filter(Boolean) });
          }}
          error={faults('tags')}
        />
        <TextField
          label={t('form.description')}
          value={draft.description ?? ''}
          onInput={(description) => onDraft({ ...draft, description })}
          error={faults('description')}
          rows={2}
          wide
        />
      </div>
    </Card>
  );
}

const options = (prefix: string, values: string[]): Option[] => values.map((value) => ({ value, text: word(prefix, value) }));

function Rules({ draft, onDraft, faults }: PartProps) {
  const queues = useResource<{ items: { queue: string }[] }>((abort) => api.get('queues', {}, abort), []);
  const part = <K extends 'retry' | 'overlap' | 'misfire' | 'timeouts'>(name: K, fields: Draft[K]): void =>
    onDraft({ ...draft, [name]: { ...draft[name], ...fields } });
  const { retry = {}, overlap = {}, misfire = {}, timeouts = {} } = draft;
  const count = (text: string): number | undefined => (text === '' ? undefined : Number(text));
  return (
    <details class="card rules">
      <summary>
        {t('form.rules')} <span class="muted small">{t('form.rules_hint')}</span>
      </summary>
      <div class="body form">
        <h3 class="wide">{t('form.retry')}</h3>
        <TextField label={t('form.max_attempts')} type="number" value={String(retry.max_attempts ?? '')} onInput={(text) => part('retry', { max_attempts: count(text) })} error={faults('retry.max_attempts')} />
        <Select label={t('form.strategy')} value={retry.strategy ?? 'fixed'} options={options('strategy', ['fixed', 'exponential'])} onChange={(strategy) => part('retry', { strategy: strategy as 'fixed' })} />
        <TextField label={t('form.initial_delay')} placeholder="5s" value={retry.initial_delay ?? ''} onInput={(text) => part('retry', { initial_delay: text || undefined })} error={faults('retry.initial_delay')} />
        <TextField label={t('form.max_delay')} placeholder="60s" value={retry.max_delay ?? ''} onInput={(text) => part('retry', { max_delay: text || undefined })} error={faults('retry.max_delay')} />
        <h3 class="wide">{t('form.timeouts')}</h3>
        <TextField label={t('form.total')} placeholder="10s" value={timeouts.total ?? ''} onInput={(text) => part('timeouts', { total: text || undefined })} error={faults('timeouts.total')} />
        <TextField label={t('form.connect')} placeholder="3s" value={timeouts.connect ?? ''} onInput={(text) => part('timeouts', { connect: text || undefined })} error={faults('timeouts.connect')} />
        <TextField label={t('form.callback')} placeholder="5m" value={timeouts.callback ?? ''} onInput={(text) => part('timeouts', { callback: text || undefined })} error={faults('timeouts.callback')} />
        <h3 class="wide">{t('form.when_not')}</h3>
        <Select label={t('form.overlap')} value={overlap.rule ?? 'queue'} options={options('overlap', ['queue', 'skip', 'parallel'])} onChange={(rule) => part('overlap', { rule: rule as 'queue' })} />
        <TextField label={t('form.max_concurrency')} type="number" value={String(overlap.max_concurrency ?? '')} onInput={(text) => part('overlap', { max_concurrency: count(text) })} error={faults('overlap.max_concurrency')} />
        <Select label={t('form.misfire')} value={misfire.rule ?? 'skip'} options={options('misfire', ['skip', 'fire_once', 'catch_up'])} onChange={(rule) => part('misfire', { rule: rule as 'skip' })} />
        <TextField label={t('form.misfire_limit')} type="number" value={String(misfire.limit ?? '')} onInput={(text) => part('misfire', { limit: count(text) })} error={faults('misfire.limit')} />
        <Select label={t('form.on_uncertain')} value={draft.on_uncertain ?? 'retry'} options={options('uncertain', ['retry', 'fail'])} onChange={(on_uncertain) => onDraft({ ...draft, on_uncertain })} />
        <h3 class="wide">{t('form.where')}</h3>
        <TextField label={t('form.queue')} list="queues" placeholder="default" value={draft.queue ?? ''} onInput={(queue) => onDraft({ ...draft, queue: queue || undefined })} error={faults('queue')} />
        <datalist id="queues">
          {(queues.data?.items ?? []).map(({ queue }) => (
            <option key={queue} value={queue} />
          ))}
        </datalist>
        <Select label={t('form.priority')} value={draft.priority ?? 'normal'} options={options('priority', ['low', 'normal', 'high'])} onChange={(priority) => onDraft({ ...draft, priority })} />
      </div>
    </details>
  );
}
