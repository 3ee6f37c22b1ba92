/** Asks for an API key when the server wants one. */
import { useState } from 'preact/hooks';
import { learnCaller, needsKey, setKey } from '../lib/api';
import { wordsOf } from '../lib/feedback';
import { t } from '../lib/i18n';
import { restartLive } from '../lib/live';
import { Button, TextField } from '../ui/controls';
import { Dialog } from '../ui/feedback';

export function Login() {
  const [text, setText] = useState('');
  const [error, setError] = useState('');
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    setKey(text);
    try {
      await learnCaller();
      needsKey.value = false;
      restartLive();
    } catch (problem) {
      setError(wordsOf(problem));
    }
  };
  return (
    <Dialog title={t('login.title')}>
      <form onSubmit={(event) => void enter(event)}>
        <div class="dialog-body">
          <p>{t('login.text')}</p>
          <TextField label={t('login.key')} type="password" value={text} onInput={setText} error={error} placeholder="ksk_…" mono />
          <p class="hint">{t('login.hint')}</p>
        </div>
        <footer>
          <Button text={t('login.enter')} kind="primary" submit disabled={!text.trim()} />
        </footer>
      </form>
    </Dialog>
  );
}
