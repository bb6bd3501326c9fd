/** Three questions and the answers of two models, written by hand in the form of a published benchmark. */
export const RECORDED_CSV = `prompt,cheap,dear,cheap_response,dear_response
"What is 2 + 2, in a word?",True,True,four,"It is ""four""."
What is the capital of France?,False,True,Lyon,"Paris, of course."
Which is heavier?,False,False,the first,"the second,
I think"
`;

export const RECORDED_YAML = `schema: rollbook.recorded.v1
file: answers.csv
prompt: prompt
models:
  - { name: cheap, response: cheap_response, correct: cheap, price: { prompt: 0.5, completion: 1 } }
  - { name: dear, response: dear_response, correct: dear, price: { prompt: 100, completion: 300 } }
cost: { weight: 0.5, perUsd: 0.01 }
`;
