/** (λI + G)⁻¹ of a symmetric G ≥ 0, by Cholesky. In: the lower triangle of G row by row. Out: the full inverse,
 *  symmetric to the bit. λ > 0 makes every pivot positive. */
import { choleskyFactor } from "../../base/index.ts";

export function ridgeInverse(gram: Float64Array, size: number, ridge: number): Float64Array {
  const inverted = invertLower(choleskyFactor(ridged(gram, size, ridge), size), size);
  const inverse = new Float64Array(size * size);
  // A⁻¹ = L⁻ᵀL⁻¹.
  for (let i = 0; i < size; i++)
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let k = i; k < size; k++) sum += inverted[k * size + i]! * inverted[k * size + j]!;
      inverse[i * size + j] = sum;
      inverse[j * size + i] = sum;
    }
  return inverse;
}

/** λI + G as a full matrix with zeros above the diagonal. */
function ridged(gram: Float64Array, size: number, ridge: number): Float64Array {
  const lower = new Float64Array(size * size);
  for (let i = 0; i < size; i++)
    for (let j = 0; j <= i; j++) lower[i * size + j] = gram[(i * (i + 1)) / 2 + j]! + (i === j ? ridge : 0);
  return lower;
}

function invertLower(lower: Float64Array, size: number): Float64Array {
  const inverse = new Float64Array(size * size);
  for (let j = 0; j < size; j++)
    for (let i = j; i < size; i++) {
      let sum = i === j ? 1 : 0;
      for (let k = j; k < i; k++) sum -= lower[i * size + k]! * inverse[k * size + j]!;
      inverse[i * size + j] = sum / lower[i * size + i]!;
    }
  return inverse;
}
