/** Symmetric positive definite systems, dense and small. Row-major; fixed operation order. */
import { RollbookError } from "./errors.ts";

/** Replaces the lower triangle of `matrix` (size × size) by its Cholesky factor L, with A = L·Lᵀ. */
export function choleskyFactor(matrix: Float64Array, size: number): Float64Array {
  for (let j = 0; j < size; j++) {
    for (let i = j; i < size; i++) {
      let value = matrix[i * size + j]!;
      for (let k = 0; k < j; k++) value -= matrix[i * size + k]! * matrix[j * size + k]!;
      if (i > j) matrix[i * size + j] = value / matrix[j * size + j]!;
      else if (value > 0) matrix[j * size + j] = Math.sqrt(value);
      else throw singular(j);
    }
  }
  return matrix;
}

/** In place: turns `vector` into A⁻¹·vector. */
export function choleskySolve(lower: Float64Array, vector: Float64Array): Float64Array {
  const size = vector.length;
  for (let i = 0; i < size; i++) {
    let value = vector[i]!;
    for (let k = 0; k < i; k++) value -= lower[i * size + k]! * vector[k]!;
    vector[i] = value / lower[i * size + i]!;
  }
  for (let i = size - 1; i >= 0; i--) {
    let value = vector[i]!;
    for (let k = i + 1; k < size; k++) value -= lower[k * size + i]! * vector[k]!;
    vector[i] = value / lower[i * size + i]!;
  }
  return vector;
}

function singular(column: number): RollbookError {
  return new RollbookError(
    "singular-system",
    { column },
    `the system is singular at column ${column}. Raise the ridge penalty or drop the constant feature.`,
  );
}
