-- Sends three messages to a queue, claims them, acknowledges two and returns one: psql -qAt -F' ' -v queue=<queue> -f worker.sql
SELECT mdb_queue.enqueue(:'queue', jsonb_build_object('number', number)) FROM generate_series(0, 2) AS number \g /dev/null

-- One for each claim.
SELECT gen_random_uuid() AS worker \gset
CREATE TEMPORARY TABLE claimed AS SELECT id, payload FROM mdb_queue.claim(:'queue', :'worker', 10);

SELECT CASE WHEN done THEN 'acked' ELSE 'lost' END, id FROM mdb_queue.ack(:'queue', :'worker',
  ARRAY(SELECT id FROM claimed WHERE payload ->> 'number' <> '1'));
SELECT CASE WHEN done THEN 'given back' ELSE 'lost' END, id FROM mdb_queue.nack(:'queue', :'worker',
  ARRAY(SELECT id FROM claimed WHERE payload ->> 'number' = '1'), 60, 'not yet');
