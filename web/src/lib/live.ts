/**
 * One event stream per browser. Visible tabs compete for a lock; its holder reads the stream and tells the others over a
 * channel. A hidden tab lets go, so there is a stream exactly while somebody looks, and another tab takes over at once.
 */
import { signal } from '@preact/signals';
import { authorized, needsKey, url } from './api';

export type Topic = 'run' | 'job' | 'queue' | 'stats' | 'operation' | 'resync';
export type LiveState = 'live' | 'paused' | 'reconnecting' | 'polling';

export interface LiveEvent {
  topic: Topic;
  id?: number | string;
  version?: number;
  patch?: Record<string, unknown>;
}

type Message =
  | { type: 'event'; event: LiveEvent; lastId: string }
  | { type: 'state'; state: LiveState; lastId: string }
  | { type: 'hello' };

export const liveState = signal<LiveState>('reconnecting');
/** Paused by hand (key `p`); a hidden tab pauses by itself. */
export const held = signal(false);

const POLL_MS = 5000;

const listeners = new Set<(event: LiveEvent) => void>();
const channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('ksana-live');
let lastId = '';
let isLeader = false;
let leaving: AbortController | null = null;

/** Hear of changes; returns how to stop. A `resync` means: anything may have changed. */
export function onLive(listen: (event: LiveEvent) => void): () => void {
  listeners.add(listen);
  return () => listeners.delete(listen);
}

function deliver(event: LiveEvent): void {
  for (const listen of listeners) listen(event);
}

function tell(event: LiveEvent): void {
  deliver(event);
  channel?.postMessage({ type: 'event', event, lastId } satisfies Message);
}

function setState(state: LiveState): void {
  liveState.value = state;
  channel?.postMessage({ type: 'state', state, lastId } satisfies Message);
}

channel?.addEventListener('message', ({ data }: MessageEvent<Message>) => {
  if (data.type === 'hello') {
    if (isLeader) setState(liveState.peek());
    return;
  }
  lastId = data.lastId || lastId;
  if (isLeader || !leaving) return;
  if (data.type === 'state') liveState.value = data.state;
  else deliver(data.event);
});

const rest = (ms: number, stop: AbortSignal): Promise<void> =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    stop.addEventListener('abort', () => {
      clearTimeout(timer);
      done();
    });
  });

async function lead(stop: AbortSignal): Promise<void> {
  isLeader = true;
  let failures = 0;
  try {
    while (!stop.aborted) {
      const began = Date.now();
      const isOffered = await follow(stop);
      if (stop.aborted) return;
      failures = Date.now() - began > POLL_MS ? 1 : failures + 1;
      // A server without events, or a proxy that holds them back, is asked every few seconds instead.
      setState(!isOffered || failures > 3 ? 'polling' : 'reconnecting');
      if (!isOffered || failures > 1) tell({ topic: 'resync' });
      await rest(isOffered ? Math.min(500 * 2 ** failures, POLL_MS) : POLL_MS, stop);
    }
  } finally {
    isLeader = false;
  }
}

/** Read the stream until it ends; false if the server offers none. */
async function follow(stop: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(url('events'), {
      headers: authorized({ Accept: 'text/event-stream', ...(lastId ? { 'Last-Event-ID': lastId } : {}) }),
      signal: stop,
    });
    if (!response.ok || !response.body) {
      if (response.status === 401) needsKey.value = true;
      return response.status >= 500;
    }
    setState('live');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return true;
      text += value.replace(/\r\n?/g, '\n');
      const blocks = text.split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) take(block);
    }
  } catch {
    return true;
  }
}

function take(block: string): void {
  let topic = '';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') lastId = value;
    else if (name === 'event') topic = value;
    else if (name === 'data') data.push(value);
  }
  if (topic === 'resync') tell({ topic: 'resync' });
  else if (data.length) tell({ topic, ...(JSON.parse(data.join('\n')) as object) } as LiveEvent);
}

function join(): void {
  if (leaving) return;
  const here = (leaving = new AbortController());
  liveState.value = 'reconnecting';
  channel?.postMessage({ type: 'hello' } satisfies Message);
  // Whatever happened while nobody looked is fetched anew.
  deliver({ topic: 'resync' });
  // Locks exist in secure contexts only; elsewhere each visible tab reads a stream of its own, and few are visible.
  if (!navigator.locks) void lead(here.signal);
  else {
    const waiting = navigator.locks.request('ksana-live', { signal: here.signal }, () => lead(here.signal));
    waiting.catch(() => undefined);
  }
}

function leave(): void {
  leaving?.abort();
  leaving = null;
  liveState.value = 'paused';
}

function settle(): void {
  if (document.hidden || held.peek()) leave();
  else join();
}

export function startLive(): void {
  document.addEventListener('visibilitychange', settle);
  addEventListener('pagehide', leave);
  addEventListener('pageshow', settle);
  held.subscribe(settle);
}

/** Begin again, with the key that is known now. */
export function restartLive(): void {
  leave();
  settle();
}
