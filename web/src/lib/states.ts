/** The states of runs, folded into families that are told apart by colour, icon and word. */

export type Family = 'wait' | 'off' | 'run' | 'retry' | 'outside' | 'ok' | 'bad';

const families: Record<string, Family> = {
  waiting: 'wait',
  scheduled: 'wait',
  queued: 'wait',
  pending: 'wait',
  planned: 'wait',
  ready: 'wait',
  skipped: 'off',
  missed: 'off',
  canceled: 'off',
  stopped: 'off',
  paused: 'off',
  running: 'run',
  stopping: 'run',
  retrying: 'retry',
  callback_pending: 'outside',
  success: 'ok',
  failed: 'bad',
  timeout: 'bad',
  dead_letter: 'bad',
};

export const familyOf = (state: string): Family => families[state.toLowerCase()] ?? 'wait';

/** As GET /api/v2/runs?state=… takes them. */
export const STATES = [
  'WAITING',
  'SCHEDULED',
  'RUNNING',
  'RETRYING',
  'CALLBACK_PENDING',
  'STOPPING',
  'SUCCESS',
  'FAILED',
  'TIMEOUT',
  'CANCELED',
  'SKIPPED',
  'MISSED',
  'DEAD_LETTER',
] as const;

const FINAL = new Set(['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELED', 'SKIPPED', 'MISSED', 'DEAD_LETTER']);
export const isFinal = (state: string): boolean => FINAL.has(state.toUpperCase());

export const BAD = ['FAILED', 'TIMEOUT', 'DEAD_LETTER'];
