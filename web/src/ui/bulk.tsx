/** Acting on many at once: an operation of the server, with its progress, until somebody puts it away. */
import { useEffect, useState } from 'preact/hooks';
import { api } from '../lib/api';
import { sayError } from '../lib/feedback';
import { number, t, word } from '../lib/i18n';
import { onLive } from '../lib/live';
import type { Operation } from '../lib/types';
import { Button } from './controls';
import { Icon } from './icon';

export interface OperationInput {
  action: 'pause' | 'resume' | 'run' | 'delete' | 'tag' | 'cancel' | 'retry' | 'redrive' | 'purge';
  ids?: number[];
  filter?: Record<string, unknown>;
  reason?: string;
  until?: string;
  tags?: string[];
  remove_tags?: string[];
  rate?: number;
}

export interface RunningOperation {
  operation: Operation | null;
  begin: (input: OperationInput) => Promise<boolean>;
  clear: () => void;
}

const POLL_MS = 1000;

/** Begins operations and follows the last one; `onEnd` is called when it is over. */
export function useOperation(onEnd: () => void): RunningOperation {
  const [operation, setOperation] = useState<Operation | null>(null);
  const id = operation?.state === 'running' ? operation.id : null;
  useEffect(() => {
    if (!id) return;
    const look = async (): Promise<void> => {
      const found = await api.get<Operation>(`operations/${id}`).catch(() => null);
      if (!found) return;
      setOperation(found);
      if (found.state !== 'running') onEnd();
    };
    const timer = setInterval(() => void look(), POLL_MS);
    const stop = onLive((event) => event.topic === 'operation' && String(event.id) === id && void look());
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [id]);
  const begin = async (input: OperationInput): Promise<boolean> => {
    try {
      const begun = await api.post<Operation>('operations', input);
      setOperation(begun);
      if (begun.state !== 'running') onEnd();
      return true;
    } catch (error) {
      sayError(error);
      return false;
    }
  };
  return { operation, begin, clear: () => setOperation(null) };
}

export function OperationBar({ operation, clear }: RunningOperation) {
  if (!operation) return null;
  const isRunning = operation.state === 'running';
  const ended = operation.done + operation.failed;
  return (
    <div class="bulk" role="status" aria-live="polite">
      <Icon name={isRunning ? 'run' : operation.failed ? 'bad' : 'ok'} />
      <span>
        {t('bulk.progress', {
          action: word('bulk.action', operation.action),
          done: number(operation.done),
          total: number(operation.total),
        })}
        {operation.failed > 0 && ` · ${t('bulk.failed', { failed: number(operation.failed) })}`}
        {operation.state === 'canceled' && ` · ${t('state.canceled')}`}
      </span>
      <div class="progress" aria-hidden="true">
        <div style={{ width: `${operation.total ? (ended / operation.total) * 100 : 100}%` }} />
      </div>
      {isRunning ? (
        <Button text={t('act.cancel')} onClick={() => void api.post(`operations/${operation.id}/cancel`).catch(sayError)} />
      ) : (
        <Button icon="close" label={t('act.close')} quiet onClick={clear} />
      )}
      {operation.errors.length > 0 && (
        <ul class="bulk-errors small">
          {operation.errors.map((error) => (
            <li key={error.id}>
              {error.id}: {error.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
