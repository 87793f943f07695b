/** Traps that an owner of the database can set; each leaves a trace in harm_done, or in the engine's own counters. */
export const trapSchema = `
  CREATE TABLE customers (id int PRIMARY KEY, name text);
  CREATE TABLE orders (id serial PRIMARY KEY, customer_id int, status text, amount numeric, note text,
    details jsonb, created_at timestamptz DEFAULT now());
  INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob');
  INSERT INTO orders (customer_id, status, amount, note, details)
    SELECT n % 2 + 1, CASE n % 2 WHEN 0 THEN 'open' ELSE 'done' END, n * 10, 'first order ' || n,
      '{"city": "Bonn", "tags": ["a"]}' FROM generate_series(1, 20) AS n;
  CREATE SCHEMA sales;
  CREATE MATERIALIZED VIEW sales.monthly AS SELECT date_trunc('month', created_at) AS month, sum(amount) FROM orders GROUP BY 1;
  CREATE VIEW open_orders AS SELECT id, amount FROM orders WHERE status = 'open' AND created_at <= now();
  CREATE TABLE "Mixed Case" ("Weird ; Column" int);
  CREATE TABLE harm_done (what text);
  CREATE SEQUENCE harm_counted;
  CREATE FUNCTION harm() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $f$ BEGIN PERFORM nextval('harm_counted'); INSERT INTO harm_done VALUES ('harm'); RETURN 1; END $f$;
  CREATE FUNCTION harm_immutable() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
  CREATE FUNCTION harm_order(orders) RETURNS int LANGUAGE sql AS 'SELECT harm()';
  CREATE FUNCTION harm_int(int, int) RETURNS int LANGUAGE sql AS 'SELECT harm()';
  CREATE OPERATOR @@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = harm_int);
  CREATE FUNCTION lower(unknown text) RETURNS text LANGUAGE sql AS 'SELECT harm()::text';
  CREATE DOMAIN harmful AS text CHECK (harm() = 1);
  CREATE VIEW harmful_view AS SELECT harm() AS harmed;
  CREATE VIEW harmful_behind AS SELECT * FROM harmful_view;
  CREATE VIEW locking_view AS SELECT pg_advisory_lock(1)::text AS locked;
  CREATE TABLE harmful_rows (id int);
  INSERT INTO harmful_rows VALUES (1);
  ALTER TABLE harmful_rows ENABLE ROW LEVEL SECURITY;
  CREATE POLICY harmful ON harmful_rows USING (harm() = 1);
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC;`;

/** Schema of a service with vectors: extensions in `public`, beside tables and functions of users. */
export const extensionSchema = `
  CREATE EXTENSION vector; CREATE EXTENSION citext; CREATE EXTENSION pgcrypto; CREATE EXTENSION unaccent;
  CREATE EXTENSION "uuid-ossp"; CREATE EXTENSION tablefunc; CREATE EXTENSION hstore;
  CREATE SCHEMA search; CREATE EXTENSION pg_trgm SCHEMA search; GRANT USAGE ON SCHEMA search TO PUBLIC;
  CREATE TABLE items (id int PRIMARY KEY, embedding vector(3), label citext, facts hstore);
  INSERT INTO items VALUES (1, '[1,0,0]', 'Apple', 'a=>1'), (2, '[0,1,0]', 'Pear', 'a=>2'), (3, '[0.9,0.1,0]', 'apricot', 'b=>3');
  CREATE VIEW near_items AS SELECT id, embedding <-> '[1,0,0]' AS distance FROM items;
  CREATE TABLE harm_done (what text);
  CREATE SEQUENCE harm_counted;
  CREATE FUNCTION harm() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $f$ BEGIN PERFORM nextval('harm_counted'); INSERT INTO harm_done VALUES ('harm'); RETURN 1; END $f$;
  CREATE FUNCTION harm_in_extension() RETURNS int LANGUAGE sql AS 'SELECT harm()';
  ALTER EXTENSION citext ADD FUNCTION harm_in_extension();
  CREATE FUNCTION l2_distance(real[], real[]) RETURNS float8 LANGUAGE sql AS 'SELECT harm()::float8';
  CREATE FUNCTION search.similarity(varchar, varchar) RETURNS real LANGUAGE sql AS 'SELECT harm()::real';
  CREATE DOMAIN harmful AS text CHECK (harm() = 1);
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC`;
