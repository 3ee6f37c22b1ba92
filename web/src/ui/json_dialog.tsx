/** Asks for a JSON value, and perhaps for a reason, before something is done with it. */
import { useState } from 'preact/hooks';
import { ApiError } from '../lib/api';
import { wordsOf } from '../lib/feedback';
import { t } from '../lib/i18n';
import { Button, TextField } from './controls';
import { Dialog } from './feedback';

interface Props {
  title: string;
  /** What the value is called; without it only the reason is asked for. */
  label: string;
  hint?: string;
  /** What stands there at first; undefined leaves the place empty. */
  value?: unknown;
  act: string;
  reason?: 'wanted' | 'needed';
  onClose: () => void;
  /** Called with undefined where the place was left empty; throws what is wrong. */
  send: (value: unknown, reason: string) => Promise<unknown>;
}

export function JsonDialog({ title, label, hint, value, act, reason: asks, onClose, send }: Props) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const [reason, setReason] = useState('');
  const [problem, setProblem] = useState('');
  const [isSending, setSending] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    let given: unknown;
    try {
      given = text.trim() ? JSON.parse(text) : undefined;
    } catch (error) {
      setProblem((error as Error).message);
      return;
    }
    setSending(true);
    try {
      await send(given, reason.trim());
      onClose();
    } catch (error) {
      setProblem(said(error));
      setSending(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} size="wide">
      <form onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">
          <TextField label={label} hint={hint} error={problem} rows={12} mono value={text} onInput={setText} />
          {asks && <TextField label={t('ask.reason')} value={reason} onInput={setReason} required={asks === 'needed'} />}
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Button text={act} kind="primary" submit disabled={isSending || (asks === 'needed' && !reason.trim())} />
        </footer>
      </form>
    </Dialog>
  );
}

const said = (error: unknown): string =>
  error instanceof ApiError && error.problems.length
    ? error.problems.map(({ field, message }) => (field ? `${field}: ${message}` : message)).join('\n')
    : wordsOf(error);
