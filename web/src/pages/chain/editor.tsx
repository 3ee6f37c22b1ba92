/** The definition of a chain as JSON; what the server finds wrong is shown with its line, and leads there. */
import { useRef, useState } from 'preact/hooks';
import { api, ApiError, ifMatch, type Problem } from '../../lib/api';
import { say, sayError } from '../../lib/feedback';
import { t } from '../../lib/i18n';
import { href, navigate } from '../../lib/router';
import type { Job } from '../../lib/types';
import { Act } from '../../ui/act';
import { Card, PageHead, TextField } from '../../ui/controls';
import { Icon } from '../../ui/icon';
import { locate } from './locate';

const EXAMPLE = {
  nodes: [
    { id: 'pull', type: 'print', cfg: { rows: [17, 25] } },
    { id: 'clean', type: 'sleep', dependsOn: ['pull'], cfg: { for: '2s' } },
    { id: 'mail', type: 'print', dependsOn: ['clean'], cfg: { first: '{{pull.artifact.rows.0}}' } },
  ],
};

export function NewChain() {
  return (
    <>
      <PageHead title={t('chain.new')} trail={[{ href: href('/chains'), text: t('nav.chains') }]} />
      <ChainEditor
        saveText={t('act.create')}
        save={async (said) => {
          const job = await api.post<Job>('jobs', said);
          say(t('done.created', { name: job.name }));
          navigate(href(`/chains/${job.id}`));
        }}
      />
    </>
  );
}

export function EditChain({ job, onSaved }: { job: Job; onSaved: (job: Job) => void }) {
  return (
    <ChainEditor
      job={job}
      saveText={t('act.save')}
      save={async (said) => {
        onSaved(await api.patch<Job>(`jobs/${job.id}`, said, ifMatch(job.version)));
        say(t('done.saved'));
      }}
    />
  );
}

interface Said {
  name: string;
  description: string;
  target: { kind: string; config: unknown };
}

interface Props {
  job?: Job;
  saveText: string;
  save: (said: Said) => Promise<void>;
}

function ChainEditor({ job, saveText, save }: Props) {
  const [name, setName] = useState(job?.name ?? '');
  const [description, setDescription] = useState(job?.description ?? '');
  const [text, setText] = useState(() => JSON.stringify(job?.target.config ?? EXAMPLE, null, 2));
  const [problems, setProblems] = useState<Problem[]>([]);
  const [isSaving, setSaving] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const config = parsed(text);
  const fault = (field: string): string | undefined => problems.find((problem) => problem.field === field)?.message;
  const placed = problems.filter((problem) => !['name', 'description'].includes(problem.field));
  const show = (problem: Problem): void => {
    const { from, to } = locate(text, pathOf(problem));
    area.current?.focus();
    area.current?.setSelectionRange(from, to);
    const lines = text.slice(0, from).split('\n').length;
    if (area.current) area.current.scrollTop = (area.current.scrollHeight / text.split('\n').length) * Math.max(0, lines - 5);
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if ('error' in config) return;
    setSaving(true);
    try {
      await save({ name, description, target: { kind: 'chain', config: config.value } });
      setProblems([]);
    } catch (error) {
      const found = error instanceof ApiError ? error.problems : [];
      setProblems(found);
      sayError(found.length ? new Error(t('error.fields')) : error);
    }
    setSaving(false);
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <Card>
        <div class="body form">
          <TextField label={t('jobs.name')} value={name} error={fault('name')} onInput={setName} required />
          <TextField label={t('form.description')} value={description} error={fault('description')} onInput={setDescription} />
          {job && (
            <p class="muted wide">
              {t('chain.schedule_elsewhere')} <a href={href(`/jobs/${job.id}`, { tab: 'definition' })}>{t('chain.as_job')}</a>
            </p>
          )}
        </div>
      </Card>
      <Card
        title={t('chain.definition_json')}
        side={<Act text={saveText} kind="primary" submit disabled={isSaving || 'error' in config} />}
      >
        <div class="body stack">
          {('error' in config || placed.length > 0) && (
            <ul class="problems" role="alert">
              {'error' in config && (
                <li class="problem">
                  <Icon name="bad" size={14} /> {config.error}
                </li>
              )}
              {!('error' in config) &&
                placed.map((problem) => (
                  <li key={problem.field + problem.message}>
                    <button type="button" class="problem" onClick={() => show(problem)}>
                      <Icon name="bad" size={14} />
                      <strong>{t('chain.line', { n: locate(text, pathOf(problem)).line })}</strong> <code>{pathOf(problem)}</code> {problem.message}
                    </button>
                  </li>
                ))}
            </ul>
          )}
          <textarea
            ref={area}
            class="mono"
            rows={28}
            spellcheck={false}
            aria-label={t('chain.definition_json')}
            aria-invalid={'error' in config || placed.length > 0 ? true : undefined}
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setProblems([]);
            }}
          />
        </div>
      </Card>
    </form>
  );
}

/** The server names places in the job, the text holds the chain alone. */
const pathOf = (problem: Problem): string => problem.field.replace(/^target\.(config\.?)?/, '');

function parsed(text: string): { value: unknown } | { error: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: (error as Error).message };
  }
}
