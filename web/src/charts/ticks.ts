/** Round instants along an axis, on the clocks of a zone. */
import { wall } from '../lib/time';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day];

export interface Tick {
  at: number;
  text: string;
}

export function ticks(since: number, until: number, width: number, zone: string): Tick[] {
  const most = Math.max(2, Math.floor(width / 80));
  const step = steps.find((each) => (until - since) / each <= most) ?? steps[steps.length - 1]!;
  const { date, time } = wall(since, zone);
  const shift = Date.parse(`${date}T${time}Z`) - Math.floor(since / 1000) * 1000;
  const found: Tick[] = [];
  for (let at = Math.ceil((since + shift) / step) * step - shift; at < until; at += step) {
    const shown = wall(at, zone);
    const isMidnight = shown.time === '00:00:00';
    found.push({ at, text: step >= day || isMidnight ? shown.date.slice(5) : shown.time.slice(0, 5) });
  }
  return found;
}
