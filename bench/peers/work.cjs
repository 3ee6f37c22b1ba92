// What a peer is given to do, and the clock on it: from the first execution until its store holds nothing unfinished.
const { Client } = require('pg');

const [, , where, count, mode, sink] = process.argv;
const body = '{"event":"order.received","payload":{"order_id":12345}}';
const work = { where, count: Number(count), executed: 0 };
let began = 0n;
let agent;

work.run = async () => {
  began = began || process.hrtime.bigint();
  work.executed += 1;
  if (mode === 'http') {
    const undici = require('undici');
    agent = agent || new undici.Agent({ connections: 64 });
    const response = await undici.request(sink, { method: 'POST', body, dispatcher: agent });
    await response.body.text();
  }
};

work.inShares = async (size, add) => {
  for (let start = 0; start < work.count; start += size) await add(Math.min(size, work.count - start));
};

work.untilEmpty = async (query) => {
  const watcher = new Client({ connectionString: where });
  await watcher.connect();
  for (;;) {
    if (work.executed >= work.count && Number((await watcher.query(query)).rows[0].left) === 0) break;
    await new Promise((done) => setTimeout(done, 20));
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  console.log(JSON.stringify({ rate: work.count / seconds }));
  process.exit(0);
};

work.main = (steps) =>
  steps().catch((error) => {
    console.error(String(error));
    process.exit(1);
  });

module.exports = work;
