export { columnsOfTable, TABLE_FORMS, type TableForm, tableFormOf } from "./cell-rows.ts";
export { type ColumnMap, readMappedTable, type TermColumn, wantedColumns } from "./mapped-table.ts";
export { type OutcomeColumns, readOutcomes } from "./outcome-table.ts";
export { surveyTable } from "./survey-table.ts";
