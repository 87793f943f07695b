/** A path by which a statement runs code of users without naming it. */
export interface Route {
  readonly name: string;
  /** Statements of an owner that set the trap; `ran` raises an error only in the console's session. */
  readonly setup: string;
  /** Statements that would each run `ran` without the guard. */
  readonly statements: readonly string[];
  /** Pattern of the reason for the rejection. */
  readonly why: RegExp;
}

/** Function, domain and tables that the routes start from. */
export const routeFixture = `
  CREATE FUNCTION ran(text DEFAULT '') RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
    $f$ BEGIN IF session_user = 'holdfast_console' THEN RAISE EXCEPTION 'code of users ran'; END IF; RETURN true; END $f$;
  CREATE DOMAIN coded AS text CHECK (ran(VALUE));
  CREATE DOMAIN coded_over AS coded;
  CREATE DOMAIN coded_behind AS text CHECK (VALUE::coded IS NOT NULL);
  CREATE TYPE coded_pair AS (a int, b coded);
  CREATE TABLE plain (id int, word text);
  INSERT INTO plain VALUES (1, 'x');
  GRANT EXECUTE ON FUNCTION ran(text) TO PUBLIC;`;

const column = /has the column .*, whose type .* calls functions of users/;
const type = /uses the type .*, which calls functions of users/;

export const routes: readonly Route[] = [
  {
    name: "input functions, by the number of a type",
    setup: "",
    statements: [
      "SELECT domain_in('x', (SELECT oid FROM pg_type WHERE typname = 'coded'), -1)",
      "SELECT array_in('{x}', (SELECT oid FROM pg_type WHERE typname = 'coded'), -1)",
      "SELECT record_in('(1,x)', (SELECT oid FROM pg_type WHERE typname = 'coded_pair'), -1)",
      "SELECT 1 FROM plain WHERE domain_in('x', (SELECT oid FROM pg_type WHERE typname = 'coded_over'), -1) IS NULL",
    ],
    why: /The function \w+ is not among those that only read/,
  },
  {
    name: "input functions, by the name of a type",
    setup: "",
    statements: [
      "SELECT pg_input_is_valid('x', 'public.coded')",
      "SELECT * FROM pg_input_error_info('{x}', 'public.coded[]')",
      "SELECT pg_input_is_valid('(1,x)', 'public.coded_pair')",
      "SELECT pg_input_is_valid('x', 'public.coded_behind')",
    ],
    why: /The function \w+ is not among those that only read/,
  },
  {
    name: "rows that are filled from JSON",
    setup: "CREATE TABLE filled (a int, b coded); INSERT INTO filled VALUES (1, 'x')",
    statements: [
      'SELECT json_populate_record(f, \'{"b": "y"}\') FROM filled f',
      'SELECT jsonb_populate_record(f, \'{"b": "y"}\') FROM filled f',
      'SELECT json_populate_recordset(f, \'[{"b": "y"}]\') FROM filled f',
      'SELECT jsonb_populate_recordset(f, \'[{"b": "y"}]\') FROM filled f',
    ],
    why: column,
  },
  {
    name: "values that polymorphic functions coerce",
    setup: `CREATE TABLE tagged (tags coded[], tag coded, over coded_over[], pair coded_pair);
      INSERT INTO tagged VALUES ('{x}', 'x', '{x}', '(1,x)')`,
    statements: [
      "SELECT array_append(tags, 'y') FROM tagged",
      "SELECT array_prepend('y', tags) FROM tagged",
      "SELECT array_remove(tags, 'y') FROM tagged",
      "SELECT array_position(tags, 'y') FROM tagged",
      "SELECT lead(tag, 1, 'y') OVER () FROM tagged",
      "SELECT array_append(over, 'y') FROM tagged",
      "SELECT array_append(ARRAY[pair], '(2,y)') FROM tagged",
    ],
    why: column,
  },
  {
    name: "a column behind a view",
    setup: `CREATE TABLE behind (tags coded[]); INSERT INTO behind VALUES ('{x}');
      CREATE VIEW before AS SELECT tags FROM behind`,
    statements: ["SELECT array_append(tags, 'y') FROM before"],
    why: column,
  },
  {
    name: "a view that casts",
    setup: `CREATE VIEW casts AS SELECT word::coded::text AS word FROM plain;
      CREATE VIEW casts_over AS SELECT word::coded_over::text AS word FROM plain;
      CREATE VIEW casts_behind AS SELECT word::coded_behind::text AS word FROM plain;
      CREATE VIEW casts_array AS SELECT ('{' || word || '}')::coded[]::text AS word FROM plain;
      CREATE VIEW casts_row AS SELECT ('(1,' || word || ')')::coded_pair::text AS word FROM plain;
      CREATE VIEW above AS SELECT word FROM casts`,
    statements: [
      "SELECT word FROM casts",
      "SELECT word FROM casts_over",
      "SELECT word FROM casts_behind",
      "SELECT word FROM casts_array",
      "SELECT word FROM casts_row",
      "SELECT count(word) FROM above",
    ],
    why: type,
  },
  {
    name: "a view that fills rows",
    setup: `CREATE VIEW fills AS SELECT (json_populate_record(NULL::coded_pair, '{"b": "y"}')).a;
      CREATE VIEW reads AS SELECT pg_input_is_valid(word, 'public.coded') AS valid FROM plain`,
    statements: ["SELECT a FROM fills", "SELECT valid FROM reads"],
    why: /has the column b, whose type|calls the function pg_input_is_valid/,
  },
  {
    name: "a policy that casts",
    setup: `CREATE TABLE guarded (word text); INSERT INTO guarded VALUES ('x'); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
      CREATE POLICY casting ON guarded USING (word::coded IS NOT NULL)`,
    statements: ["SELECT word FROM guarded", "SELECT count(*) FROM guarded"],
    why: type,
  },
  {
    name: "the predicate of an index",
    setup: "CREATE TABLE partly (id int, word text); CREATE INDEX ON partly (id) WHERE ran('folded')",
    statements: ["SELECT id FROM partly", "EXPLAIN SELECT id FROM partly", "SELECT 1 FROM plain, partly"],
    why: /has an index that calls a function or operator of users/,
  },
  {
    name: "the expression of an index",
    setup: "CREATE TABLE indexed (id int); CREATE INDEX ON indexed ((id > 0 AND ran('folded')))",
    statements: ["SELECT id FROM indexed", "EXPLAIN SELECT id FROM indexed"],
    why: /has an index that calls a function or operator of users/,
  },
  {
    name: "an index of a materialized view",
    setup: "CREATE MATERIALIZED VIEW stored AS SELECT 1 AS id; CREATE INDEX ON stored (id) WHERE ran('folded')",
    statements: ["SELECT id FROM stored"],
    why: /has an index that calls a function or operator of users/,
  },
  {
    name: "extended statistics",
    setup: "CREATE TABLE counted (id int); CREATE STATISTICS counting ON (id > 0 AND ran('folded')) FROM counted",
    statements: ["SELECT id FROM counted", "EXPLAIN SELECT id FROM counted"],
    why: /has statistics that calls a function or operator of users/,
  },
  {
    name: "the key of a partitioned table",
    setup: `CREATE TABLE parted (id int) PARTITION BY LIST ((id > 0 AND ran('folded')));
      CREATE TABLE part PARTITION OF parted FOR VALUES IN (true); INSERT INTO parted VALUES (5)`,
    statements: ["SELECT id FROM parted", "EXPLAIN SELECT id FROM parted"],
    why: /has a partition key that calls a function or operator of users/,
  },
  {
    name: "functions that build a partition's constraint",
    setup: `CREATE TABLE hashed (id int) PARTITION BY HASH ((id > 0 AND ran('folded')));
      CREATE TABLE hashed_part PARTITION OF hashed FOR VALUES WITH (MODULUS 1, REMAINDER 0)`,
    statements: [
      "SELECT pg_get_partition_constraintdef('public.part'::regclass)",
      "SELECT satisfies_hash_partition('public.hashed'::regclass, 1, 0, true)",
    ],
    why: /The function \w+ is not among those that only read/,
  },
  {
    name: "the difference of a range, by which the planner estimates",
    setup: `CREATE FUNCTION apart(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS
        $f$ BEGIN PERFORM public.ran(); RETURN $1 - $2; END $f$;
      GRANT EXECUTE ON FUNCTION apart(float8, float8) TO PUBLIC;
      CREATE TYPE stretch AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = apart);
      CREATE TABLE stretched (during stretch);
      INSERT INTO stretched SELECT stretch(n, n + n % 7 + 1) FROM generate_series(1, 500) AS n;
      ANALYZE stretched`,
    statements: [
      "SELECT count(*) FROM stretched WHERE during && '[3.5,40.5)'",
      "EXPLAIN SELECT 1 FROM stretched WHERE during && '[3.5,40.5)'",
    ],
    why: column,
  },
];

/** Objects that resemble a route and run no code of users. */
export const harmlessObjects = `
  CREATE DOMAIN plain_mail AS text CHECK (VALUE ~ '@');
  CREATE TYPE plain_pair AS (a int, b plain_mail);
  CREATE TABLE mails (mail plain_mail, pair plain_pair, mails plain_mail[]);
  INSERT INTO mails VALUES ('a@b', '(1,a@b)', '{a@b}');
  CREATE INDEX ON mails (lower(mail)) WHERE mail <> '';
  CREATE STATISTICS mails_statistics ON lower(mail), (mail || '') FROM mails;
  CREATE VIEW cast_mails AS SELECT word::plain_mail FROM plain WHERE word ~ '@';
  CREATE TABLE origin (id int); INSERT INTO origin VALUES (7); CREATE INDEX ON origin (id) WHERE ran('folded');
  CREATE MATERIALIZED VIEW taken AS SELECT id FROM origin;
  CREATE TABLE checked (id int CHECK (ran('folded'))); INSERT INTO checked VALUES (1);
  CREATE TABLE checked_child () INHERITS (checked);`;

export const besideStatements: readonly (readonly [sql: string, first: readonly unknown[] | undefined])[] = [
  ["SELECT mail, mails FROM mails", ["a@b", "{a@b}"]],
  ["SELECT array_append(mails, 'c@d') FROM mails", ["{a@b,c@d}"]],
  ['SELECT (json_populate_record(pair, \'{"b": "c@d"}\')).b FROM mails', ["c@d"]],
  ["SELECT count(*) FROM cast_mails", ["0"]],
  ["SELECT id FROM taken", [7]],
  ["SELECT id FROM part WHERE id > 0", [5]],
  ["SELECT id FROM checked WHERE id < 5", [1]],
  ["SELECT count(*) FROM mails m WHERE m.mail = 'a@b'", ["1"]],
];
