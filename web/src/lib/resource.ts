/** Data of the server for a component: fetched, kept while it is fetched anew, refreshed when events say so. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { needsKey } from './api';
import { onLive, type LiveEvent, type Topic } from './live';

export interface Resource<T> {
  data: T | undefined;
  error: unknown;
  isLoading: boolean;
  refresh: () => void;
  /** Put data in by hand, e.g. what a change answered. */
  set: (data: T) => void;
}

interface Options {
  /** Events of these topics ask for a refresh; `wants` narrows them down. A resync always does. */
  live?: Topic[];
  wants?: (event: LiveEvent) => boolean;
  /** At least this long between two refreshes that events ask for. */
  pace?: number;
}

export function useResource<T>(
  load: ((abort: AbortSignal) => Promise<T>) | null,
  deps: unknown[],
  { live = [], wants, pace = 1000 }: Options = {},
): Resource<T> {
  const [shown, setShown] = useState<{ data?: T; error?: unknown; isLoading: boolean }>({ isLoading: load !== null });
  const [turn, setTurn] = useState(0);
  const key = JSON.stringify(deps);
  const keyShown = useRef(key);
  const latest = useRef({ load, wants });
  latest.current = { load, wants };

  useEffect(() => {
    const { load: fetchIt } = latest.current;
    if (!fetchIt) return;
    const abort = new AbortController();
    const isOther = keyShown.current !== key;
    keyShown.current = key;
    setShown((old) => ({ data: old.data, isLoading: isOther || old.data === undefined }));
    fetchIt(abort.signal).then(
      (data) => !abort.signal.aborted && setShown({ data, isLoading: false }),
      (error: unknown) => !abort.signal.aborted && setShown((old) => ({ data: old.data, error, isLoading: false })),
    );
    return () => abort.abort();
  }, [key, turn, load === null]);

  const refresh = useCallback(() => setTurn((n) => n + 1), []);

  const topics = live.join();
  useEffect(() => {
    if (!topics) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const soon = (): void => {
      if (timer !== undefined) return;
      timer = setTimeout(() => {
        timer = undefined;
        last = Date.now();
        if (!needsKey.peek()) refresh();
      }, Math.max(50, last + pace - Date.now()));
    };
    const stop = onLive((event) => {
      if (event.topic === 'resync') soon();
      else if (topics.split(',').includes(event.topic) && (latest.current.wants?.(event) ?? true)) soon();
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [topics, pace]);

  // What was refused for want of a key is asked for again once there is one.
  useEffect(() => {
    let wasAsking = needsKey.peek();
    return needsKey.subscribe((isAsking) => {
      if (wasAsking && !isAsking) refresh();
      wasAsking = isAsking;
    });
  }, []);

  const set = useCallback((data: T) => setShown({ data, isLoading: false }), []);
  return { data: shown.data, error: shown.error, isLoading: shown.isLoading, refresh, set };
}

/** A value that follows another after it has rested. */
export function useRested<T>(value: T, ms = 250): T {
  const [rested, setRested] = useState(value);
  const text = JSON.stringify(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return rested;
}
