/** The definition of a job that is there: changed with care that nobody else's change is lost. */
import { useState } from 'preact/hooks';
import { api, ifMatch } from '../../lib/api';
import { changeOf, draftOf, type Draft } from '../../lib/definition';
import { say } from '../../lib/feedback';
import { t } from '../../lib/i18n';
import type { Job } from '../../lib/types';
import { Button, Card } from '../../ui/controls';
import { Definition } from './definition';

export function EditDefinition({ job, onSaved }: { job: Job; onSaved: (job: Job) => void }) {
  // What was read when editing began: live updates of the job must not move it under the hands of whoever types.
  const [read, setRead] = useState(job);
  const [draft, setDraft] = useState<Draft>(() => draftOf(job));
  const [turn, setTurn] = useState(0);
  const change = changeOf(draftOf(read), draft);
  const begin = (from: Job): void => {
    setRead(from);
    setDraft(draftOf(from));
    setTurn(turn + 1);
  };
  const save = async (): Promise<void> => {
    const saved = await api.patch<Job>(`jobs/${job.id}`, change, ifMatch(read.version));
    say(t('done.saved'));
    onSaved(saved);
    begin(saved);
  };
  return (
    <>
      {read.version !== job.version && (
        <Card>
          <div class="body line" role="alert">
            {t('def.changed_meanwhile')} <Button text={t('def.reload')} onClick={() => begin(job)} />
          </div>
        </Card>
      )}
      <Definition
        key={turn}
        draft={draft}
        onDraft={setDraft}
        job={job}
        saveText={t('act.save')}
        isChanged={Object.keys(change).length > 0}
        save={save}
        onReset={() => begin(job)}
      />
    </>
  );
}
