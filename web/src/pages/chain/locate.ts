/** Finds the place of a value in a JSON text, so that what is wrong can be shown where it stands. */

export interface Place {
  from: number;
  to: number;
  line: number;
}

/** `nodes[2].dependsOn` as steps into a value. */
export function stepsOf(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([name, index]) => (index === undefined ? name : Number(index)));
}

/** Where the value at a path stands, or the nearest one around it. The text has to be JSON. */
export function locate(text: string, path: string): Place {
  const steps = stepsOf(path);
  let found = { from: 0, to: 0, depth: -1 };
  const rest = (at: number): number => {
    while (at < text.length && /\s/.test(text[at]!)) at++;
    return at;
  };
  const afterText = (at: number): number => {
    for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++;
    return at + 1;
  };
  const afterValue = (begin: number, depth: number, isOnPath: boolean): number => {
    const from = rest(begin);
    let at = from;
    if (text[at] === '{' || text[at] === '[') {
      const isObject = text[at] === '{';
      at = rest(at + 1);
      for (let index = 0; at < text.length && text[at] !== '}' && text[at] !== ']'; index++) {
        let key: string | number = index;
        if (isObject) {
          const end = afterText(at);
          key = JSON.parse(text.slice(at, end)) as string;
          at = rest(end) + 1;
        }
        at = rest(afterValue(at, depth + 1, isOnPath && steps[depth] === key));
        if (text[at] === ',') at = rest(at + 1);
      }
      at++;
    } else if (text[at] === '"') at = afterText(at);
    else while (at < text.length && !/[\s,\]}]/.test(text[at]!)) at++;
    if (isOnPath && depth > found.depth) found = { from, to: at, depth };
    return at;
  };
  afterValue(0, 0, true);
  return { from: found.from, to: found.to, line: text.slice(0, found.from).split('\n').length };
}
