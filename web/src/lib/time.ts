/** Instants and spans as people read them. Every absolute time carries its zone. */
import { computed, signal } from '@preact/signals';
import { lang, zone } from './settings';

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The server's clock minus ours, so that countdowns agree with it. */
let skew = 0;

export function noteServerDate(header: string | null): void {
  const said = header ? Date.parse(header) - Date.now() : 0;
  // The header has whole seconds, so a small difference means nothing.
  skew = Math.abs(said) > 2000 ? said : 0;
}

export const nowMs = (): number => Date.now() + skew;

/** The instant it is, to the second; whoever reads it is drawn anew with it. */
export const now = signal(nowMs());
setInterval(() => {
  if (!document.hidden) now.value = nowMs();
}, 1000);
/** The same to ten seconds, for what need not count seconds. */
export const slowNow = computed(() => Math.floor(now.value / 10_000) * 10_000);

/** The zone to show an instant in; `own` is that of the job it belongs to. */
export function zoneFor(own?: string | null): string {
  const chosen = zone.value;
  if (chosen === 'job') return own || browserZone;
  return chosen === 'browser' ? browserZone : chosen === 'utc' ? 'UTC' : chosen;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(name: string): Intl.DateTimeFormat {
  let format = formats.get(name);
  if (!format) {
    const options: Intl.DateTimeFormatOptions = {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    };
    try {
      format = new Intl.DateTimeFormat('en-US', options);
    } catch {
      format = new Intl.DateTimeFormat('en-US', { ...options, timeZone: 'UTC' });
    }
    formats.set(name, format);
  }
  return format;
}

export interface Wall {
  date: string;
  time: string;
  offset: string;
  zone: string;
}

/** An instant on the wall clock of a zone. */
export function wall(at: number, zoneName: string): Wall {
  const parts = Object.fromEntries(formatOf(zoneName).formatToParts(at).map((part) => [part.type, part.value]));
  const offset = zoneName === 'UTC' ? 'UTC' : (parts.timeZoneName ?? '').replace('GMT', '') || '+00:00';
  return {
    date: `${parts.year}-${parts.month}-${parts.day}`,
    time: `${parts.hour}:${parts.minute}:${parts.second}`,
    offset,
    zone: zoneName,
  };
}

/** The instant at which the wall clock of a zone shows `2026-11-16T09:00`; the earlier one if it does twice. */
export function fromWall(text: string, zoneName: string): string | null {
  const asUtc = Date.parse(`${text.length === 16 ? `${text}:00` : text}Z`);
  if (Number.isNaN(asUtc)) return null;
  const shown = (at: number): number => {
    const { date, time } = wall(at, zoneName);
    return Date.parse(`${date}T${time}Z`);
  };
  const day = 86_400_000;
  const guesses = [asUtc - day, asUtc + day].map((near) => asUtc - (shown(near) - near)).sort((a, b) => a - b);
  const exact = guesses.find((at) => shown(at) === asUtc) ?? guesses[guesses.length - 1]!;
  return new Date(exact).toISOString().replace('.000Z', 'Z');
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600_000],
  ['month', 2_629_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

/** How far from now, in words: "in 3 min", "2 days ago". */
export function relative(at: number, from: number): string {
  const span = at - from;
  const [unit, size] = units.find(([, each]) => Math.abs(span) >= each) ?? ['second', 1000];
  const format = new Intl.RelativeTimeFormat(lang.value, { numeric: 'always', style: 'short' });
  return format.format(Math.trunc(span / size), unit);
}

/** `42 ms`, `1.2 s`, `3 m 05 s`, `2 h 10 m`, `3 d 4 h`. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  const size = Math.abs(ms);
  if (size < 1000) return `${size < 10 && size % 1 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (size < 60_000) return `${(ms / 1000).toFixed(size < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(size / 60_000);
  if (minutes < 60) return `${minutes} m ${String(Math.floor((size % 60_000) / 1000)).padStart(2, '0')} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function weekday(at: number, zoneName: string): string {
  return new Intl.DateTimeFormat(lang.value, { weekday: 'short', timeZone: zoneName }).format(at);
}

export const zones = (): string[] => Intl.supportedValuesOf('timeZone');
