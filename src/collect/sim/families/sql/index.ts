export { DOMAINS, databaseOf, drawData, schemaOf } from "./domains.ts";
export {
  answer,
  type Child,
  type ChildFilter,
  type Domain,
  type Parent,
  type Query,
  type QueryKind,
} from "./query.ts";
export { renderSql, sayQuery } from "./render-sql.ts";
