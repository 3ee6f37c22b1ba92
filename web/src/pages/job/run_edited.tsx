/** Run a job once with another input. */
import { useState } from 'preact/hooks';
import { t } from '../../lib/i18n';
import { runNow } from '../../lib/job_actions';
import type { Job } from '../../lib/types';
import { Button } from '../../ui/controls';
import { Dialog } from '../../ui/feedback';
import { JsonField } from './target_fields';

export function RunEdited({ job, onClose }: { job: Job; onClose: () => void }) {
  const [input, setInput] = useState<unknown>(job.last_run?.input ?? {});
  return (
    <Dialog title={t('job.run_edited', { name: job.name })} onClose={onClose} size="wide">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void runNow(job, input).then((isDone) => isDone && onClose());
        }}
      >
        <div class="dialog-body">
          <JsonField label={t('job.input')} hint={t('job.input_hint')} value={input} onValue={setInput} rows={10} />
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Button text={t('act.run')} icon="play" kind="primary" submit />
        </footer>
      </form>
    </Dialog>
  );
}
