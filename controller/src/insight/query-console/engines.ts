/*
 * Query consoles of the engines, by the value of `database_type`; an engine that is not here has none.
 */
export { mysql } from "./mysql/console.ts";
export { postgresql } from "./postgresql/console.ts";
