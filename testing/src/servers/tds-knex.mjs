// Steps of Knex on a front end of T-SQL: creation, introspection, changes of rows and of the schema, migrations.
import { driverOptions, load, step, target } from "./tds-orm-steps.mjs";

const { host: server, port, user, password, database } = target;
const connection = { server, port, user, password, database, options: driverOptions };
const knex = load("knex")({ client: "mssql", connection });

await step("create", () => knex.schema.createTable("users", (b) => { b.increments("id"); b.string("name", 50).notNullable().unique(); b.decimal("rating", 10, 2).defaultTo(1.5); b.boolean("active").defaultTo(true); b.text("notes"); b.binary("data"); b.uuid("uid"); b.json("j"); b.timestamps(true, true); b.enu("kind", ["a", "b"]); b.index(["rating"], "users_rating"); }));
await step("create2", () => knex.schema.createTable("posts", (b) => { b.increments("id"); b.integer("user_id").unsigned().references("id").inTable("users").onDelete("CASCADE"); b.string("title"); b.bigInteger("views"); b.dateTime("at", { precision: 3 }); }));
await step("hasTable", () => knex.schema.hasTable("users"));
await step("hasColumn", () => knex.schema.hasColumn("users", "name"));
await step("columnInfo", () => knex("users").columnInfo());
await step("insert", () => knex("users").insert({ name: "Ann", kind: "a" }, ["id", "name", "rating"]));
await step("insert many", () => knex("posts").insert([{ user_id: 1, title: "A", views: 1 }, { user_id: 1, title: "B" }]).returning("*"));
await step("batchInsert", () => knex.batchInsert("posts", [{ user_id: 1, title: "C" }, { user_id: 1, title: "D" }], 1).returning("id"));
await step("select", () => knex("users as u").leftJoin("posts as p", "p.user_id", "u.id").select("u.name", "p.title").orderBy("p.id").limit(2).offset(1));
await step("first", () => knex("users").where({ name: "ann" }).first());
await step("update", () => knex("posts").where("id", 1).update({ views: 9 }, ["id", "views"]));
await step("increment", () => knex("posts").where("id", 1).increment("views", 3));
await step("count", () => knex("posts").count("* as n").groupBy("user_id"));
await step("whereIn", () => knex("posts").whereIn("id", knex("posts").select("id").where("views", ">", 5)).pluck("title"));
await step("with", () => knex.with("w", knex("posts").where("id", "<", 3)).select("*").from("w"));
await step("union", () => knex("posts").select("id").union([knex("users").select("id")]));
await step("raw", () => knex.raw("SELECT ? AS a, ?? FROM users", [5, "name"]));
await step("transaction", () => knex.transaction(async (trx) => { await trx("posts").insert({ title: "x" }); throw new Error("back"); }).catch(() => knex("posts").count("* as n")));
await step("savepoint", () => knex.transaction(async (trx) => { await trx("posts").insert({ title: "s" }); await trx.transaction(async (inner) => { await inner("posts").insert({ title: "t" }); throw new Error("x"); }).catch(() => {}); return trx("posts").count("* as n"); }));
await step("upsert", () => knex("users").insert({ name: "Ann", kind: "b" }).then(() => "none", (e) => e.number));
await step("alter", () => knex.schema.alterTable("posts", (b) => { b.string("isbn", 20).notNullable().defaultTo("none"); b.integer("views").alter(); b.renameColumn("title", "headline"); b.dropForeign("user_id"); b.unique(["isbn", "id"]); }));
await step("alter2", () => knex.schema.alterTable("posts", (b) => { b.dropUnique(["isbn", "id"]); b.dropColumn("isbn"); b.setNullable("user_id"); }));
await step("rename", () => knex.schema.renameTable("posts", "articles"));
await step("view", () => knex.schema.createView("v", (v) => { v.columns(["a"]); v.as(knex("users").select("name")); }));
await step("viewread", () => knex("v"));
await step("migrations", () => knex.migrate.latest({ migrationSource: { getMigrations: async () => ["one"], getMigrationName: (m) => m, getMigration: async () => ({ up: (k) => k.schema.createTable("m", (b) => b.increments()), down: (k) => k.schema.dropTable("m") }) } }));
await step("status", () => knex("knex_migrations").select("name", "batch"));
await step("delete", () => knex("articles").where("id", 1).del(["id"]));
await step("truncate", () => knex("articles").truncate());
await step("drop", async () => { await knex.schema.dropView("v"); await knex.schema.dropTableIfExists("articles"); await knex.schema.dropTable("users"); });
await knex.destroy();
