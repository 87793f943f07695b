// Sends three messages to a queue, claims them, acknowledges two and returns one: node worker.mjs <queue>
import { randomUUID } from "node:crypto";
import pg from "pg";

const queue = process.argv[2];
// The environment has the connection's parameters: PGHOST, PGUSER and so on.
const client = new pg.Client();
await client.connect();

for (const number of [0, 1, 2]) await client.query("SELECT mdb_queue.enqueue($1, $2)", [queue, { number }]);

const worker = randomUUID(); // one for each claim
const { rows: messages } = await client.query("SELECT id, payload FROM mdb_queue.claim($1, $2, 10)", [queue, worker]);

const failed = messages.filter(({ payload }) => payload.number === 1).map(({ id }) => id);
const done = messages.map(({ id }) => id).filter((id) => !failed.includes(id));

const acked = await client.query("SELECT id, done FROM mdb_queue.ack($1, $2, $3)", [queue, worker, done]);
for (const row of acked.rows) console.log(row.done ? "acked" : "lost", row.id);
const nacked = await client.query("SELECT id, done FROM mdb_queue.nack($1, $2, $3, 60, 'not yet')", [queue, worker, failed]);
for (const row of nacked.rows) console.log(row.done ? "given back" : "lost", row.id);
await client.end();
