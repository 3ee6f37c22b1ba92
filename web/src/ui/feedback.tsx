/** Dialogs with a focus trap, toasts, and the states every page has: loading, empty, error, offline. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, Offline } from '../lib/api';
import { asked, toasts, unsay, wordsOf } from '../lib/feedback';
import { t } from '../lib/i18n';
import { Button, TextField } from './controls';
import { Icon } from './icon';

interface DialogProps {
  title: string;
  /** Left out where there is no way around an answer. */
  onClose?: () => void;
  children: ComponentChildren;
  size?: 'small' | 'wide';
}

/** A modal dialog. The browser keeps the focus inside and gives it back; Escape closes. */
export function Dialog({ title, onClose, children, size = 'small' }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    // The browser would begin with the button that closes.
    dialog.current?.querySelector<HTMLElement>('[autofocus], .dialog-body :is(input, textarea, select), footer .button:last-child')?.focus();
    return () => (before as HTMLElement | null)?.focus?.();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={size}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onMouseDown={(event) => event.target === dialog.current && onClose?.()}
    >
      <div class="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          {onClose && <Button icon="close" label={t('act.close')} quiet onClick={onClose} />}
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** The one question that is open, if there is one. */
export function Question() {
  const open = asked.value;
  const [reason, setReason] = useState('');
  const [until, setUntil] = useState('');
  const [typed, setTyped] = useState('');
  useEffect(() => {
    setReason('');
    setUntil('');
    setTyped('');
  }, [open]);
  if (!open) return null;
  const { what, answer } = open;
  const mayAct = !what.typed || typed === what.typed;
  return (
    <Dialog title={what.title} onClose={() => answer(null)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (mayAct) answer({ reason: reason.trim(), until: until.trim() });
        }}
      >
        <div class="dialog-body">
          {what.body}
          {what.wantsReason && (
            <label class="field">
              <span class="label">{t('ask.reason')}</span>
              <input value={reason} maxLength={500} autofocus onInput={(event) => setReason(event.currentTarget.value)} />
            </label>
          )}
          {what.wantsUntil && <TextField label={t('ask.until')} hint={t('ask.until_hint')} value={until} onInput={setUntil} />}
          {what.typed && (
            <label class="field">
              <span class="label">{t('ask.type', { text: what.typed })}</span>
              <input value={typed} autocomplete="off" autofocus onInput={(event) => setTyped(event.currentTarget.value)} />
            </label>
          )}
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={() => answer(null)} />
          <Button text={what.act} kind={what.isDangerous ? 'danger' : 'primary'} disabled={!mayAct} submit />
        </footer>
      </form>
    </Dialog>
  );
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.tone}`}>
          <Icon name={toast.tone === 'bad' ? 'bad' : 'ok'} />
          <div>
            <div>{toast.text}</div>
            {toast.detail && <div class="muted small">{toast.detail}</div>}
          </div>
          {toast.link && <a href={toast.link.href}>{toast.link.text}</a>}
          <Button icon="close" label={t('act.close')} quiet onClick={() => unsay(toast.id)} />
        </div>
      ))}
    </div>
  );
}

export function Loading() {
  return (
    <div class="placeholder" role="status">
      <span class="spinner" />
      {t('state_page.loading')}
    </div>
  );
}

export function Empty({ title, text, children }: { title: string; text?: string; children?: ComponentChildren }) {
  return (
    <div class="placeholder">
      <strong>{title}</strong>
      {text && <span>{text}</span>}
      {children}
    </div>
  );
}

export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const isOffline = error instanceof Offline;
  return (
    <div class="placeholder bad" role="alert">
      <Icon name={isOffline ? 'outside' : 'bad'} size={20} />
      <strong>{isOffline ? t('error.offline_title') : t('error.title')}</strong>
      <span>{wordsOf(error)}</span>
      {error instanceof ApiError && error.requestId && (
        <span class="muted small">{t('error.request', { id: error.requestId })}</span>
      )}
      {retry && <Button text={t('act.retry_load')} onClick={retry} />}
    </div>
  );
}

/** What stands in for data that is not here; null once it is, even if refreshing it fails. */
export function Pending({
  data,
  error,
  refresh,
}: {
  data: unknown;
  error: unknown;
  isLoading?: boolean;
  refresh?: () => void;
}) {
  if (data !== undefined) return null;
  // A key is being asked for; that says enough.
  if (error instanceof ApiError && error.status === 401) return null;
  return error ? <Failed error={error} retry={refresh} /> : <Loading />;
}
