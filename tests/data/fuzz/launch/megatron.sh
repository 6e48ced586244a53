#!/bin/bash
#SBATCH --nodes=4
#SBATCH --job-name=small
SIZE=8B
NNODES=${SLURM_NNODES:-1}
if [ "$SIZE" == "1B" ]; then
  LAYERS=16
elif [ "$SIZE" == "8B" ]; then
  LAYERS=32
else
  echo "unknown"
  exit 1
fi
case $SIZE in
  1B) HIDDEN=2048 ;;
  8B) HIDDEN=4096 ;;
esac
MODEL=(
  --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads 32 # Llama's shapes
  --group-query-attention --num-query-groups 8 --ffn-hidden-size 14336
  --seq-length 4096 --max-position-embeddings 8192 --vocab-size 128256
  --swiglu --untie-embeddings-and-output-weights --disable-bias-linear
  --normalization RMSNorm --position-embedding-type rope
  --attention-dropout 0 --hidden-dropout 0
)
PARALLEL=" \
  --tensor-model-parallel-size 4 \
  --pipeline-model-parallel-size 2 \
  --num-layers-per-virtual-pipeline-stage 4 \
  --decoder-first-pipeline-num-layers 4 \
  --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce"
BATCH="--micro-batch-size 2 --global-batch-size $((NNODES * 32)) --bf16 --lr 1e-4 --save $OUT"
torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py "${MODEL[@]}" $PARALLEL $BATCH \
  --recompute-granularity selective --log-interval 10
