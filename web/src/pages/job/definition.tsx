/** Makes or changes a job: a form, the same as JSON, as curl and as Python, with a preview of when it will fire. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, type Problem } from '../../lib/api';
import { asCurl, asPython, type Draft } from '../../lib/definition';
import { sayError } from '../../lib/feedback';
import { t } from '../../lib/i18n';
import { param, setQuery } from '../../lib/router';
import type { Job } from '../../lib/types';
import { Act } from '../../ui/act';
import { Code } from '../../ui/code';
import { Button, Card, Segments } from '../../ui/controls';
import { DefinitionForm } from './form';
import { SchedulePreview } from './preview';

interface Props {
  draft: Draft;
  onDraft: (draft: Draft) => void;
  job?: Job;
  saveText: string;
  isChanged: boolean;
  save: () => Promise<void>;
  onReset?: () => void;
}

export type Faults = (field: string) => string | undefined;

export function Definition({ draft, onDraft, job, saveText, isChanged, save, onReset }: Props) {
  const [problems, setProblems] = useState<Problem[]>([]);
  const [isSaving, setSaving] = useState(false);
  const view = param('as', 'form');
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (problems.length) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [problems]);
  const seen = new Set<string>();
  const faults: Faults = (field) => {
    seen.add(field);
    return problems.find((problem) => problem.field === field)?.message;
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setSaving(true);
    try {
      await save();
      setProblems([]);
    } catch (error) {
      const found = error instanceof ApiError ? error.problems : [];
      setProblems(found);
      if (found.length) sayError(new Error(t('error.fields')));
      else sayError(error);
    }
    setSaving(false);
  };
  const change = (next: Draft): void => {
    onDraft(next);
    setProblems([]);
  };
  const shown = view === 'json' ? <JsonView draft={draft} onDraft={change} /> : <DefinitionForm draft={draft} onDraft={change} faults={faults} />;
  return (
    <form class="definition" ref={form} noValidate onSubmit={(event) => void submit(event)}>
      <div class="stack">
        <div class="line">
          <Segments
            label={t('def.view')}
            value={view}
            options={[
              { value: 'form', text: t('def.form') },
              { value: 'json', text: 'JSON' },
              { value: 'curl', text: 'curl' },
              { value: 'python', text: 'Python' },
            ]}
            onChange={(as) => setQuery({ as: as === 'form' ? null : as })}
          />
          <span class="grow" />
          {onReset && isChanged && <Button text={t('act.reset')} quiet onClick={onReset} />}
          <Act text={saveText} kind="primary" submit disabled={!isChanged || isSaving} />
        </div>
        {view === 'curl' ? <Code text={asCurl(draft, job)} label="curl" /> : view === 'python' ? <Code text={asPython(draft, job)} label="Python" /> : shown}
        <Unplaced problems={problems} seen={seen} />
      </div>
      <SchedulePreview schedule={draft.schedule ?? null} />
    </form>
  );
}

/** What is wrong with fields that are not on the screen. */
function Unplaced({ problems, seen }: { problems: Problem[]; seen: Set<string> }) {
  const rest = problems.filter((problem) => !seen.has(problem.field));
  if (!rest.length) return null;
  return (
    <Card>
      <ul class="body" role="alert">
        {rest.map((problem) => (
          <li key={problem.field} class="problem">
            {problem.field}: {problem.message}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function JsonView({ draft, onDraft }: { draft: Draft; onDraft: (draft: Draft) => void }) {
  const [text, setText] = useState(() => JSON.stringify(draft, null, 2));
  const [problem, setProblem] = useState('');
  return (
    <div class="field">
      <textarea
        class="mono"
        rows={30}
        spellcheck={false}
        aria-label="JSON"
        aria-invalid={problem ? true : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          try {
            onDraft(JSON.parse(event.currentTarget.value) as Draft);
            setProblem('');
          } catch (error) {
            setProblem((error as Error).message);
          }
        }}
      />
      {problem && <div class="problem">{problem}</div>}
    </div>
  );
}
