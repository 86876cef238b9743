#!/bin/bash
# Llama 3 8B in FP8 on one host of eight GPUs.
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

OUT=${1:-"runs/llama3_8b"}
TOKENIZER=${2:-"MOCK"}
mkdir -p "$(dirname "$OUT")"

GPUS=8
NODES=1
WORLD=$(($GPUS*$NODES))
TP=1
SEQUENCE=8192
DTYPE="fp8"

LAUNCH=(
    --nproc_per_node $GPUS
    --nnodes $NODES
    --master_addr ${MASTER_ADDR:-localhost}
)

MODEL=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --kv-channels 128
    --seq-length $SEQUENCE
    --max-position-embeddings $SEQUENCE
    --position-embedding-type rope
    --attention-dropout 0.0 --hidden-dropout 0.0
    --swiglu
    --attention-backend fused
    --normalization RMSNorm
    --untie-embeddings-and-output-weights
    --disable-bias-linear   # as published
)

TRAIN=(
    --micro-batch-size 1
    --global-batch-size 128
    --lr 0.00015
    --decoupled-lr 5.0e-4      # embedding and output
    --bf16
    --grad-reduce-in-bf16
    --cross-entropy-loss-fusion
    --empty-unused-memory-level 1
)

PRECISION=()
if [[ "$DTYPE" == "fp8" ]]; then
    PRECISION+=(
        "--fp8-format hybrid"
        "--fp8-amax-history-len 1024"
        "--fp8-param-gather"
    )
elif [ "$DTYPE" = "none" ]; then
    PRECISION+=(--fp16)
fi

PARALLEL=(
    --tensor-model-parallel-size $TP
    # --pipeline-model-parallel-size 4
    --sequence-parallel
)
DDP=(--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
TRAIN+=("${DDP[@]}")

if [[ "$TOKENIZER" == "MOCK" ]] || [[ -z "$TOKENIZER" ]]; then
    DATA=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128256" "--split '99,1,0'"
          "--no-create-attention-mask-in-dataloader")
else
    DATA=("--tokenizer-type HuggingFaceTokenizer" "--tokenizer-model $TOKENIZER")
fi

LOG=(--log-interval 1 --save "$OUT" --load "$OUT" --ckpt-format torch_dist)

if [ ! -f "pretrain_gpt.py" ]; then
    echo "start this in Megatron-LM's directory"; exit 1
fi

torchrun ${LAUNCH[@]} \
    "pretrain_gpt.py" \
    ${MODEL[@]} \
    ${TRAIN[@]} ${PRECISION[@]} ${PARALLEL[@]} \
    ${DATA[@]} \
    ${LOG[@]}
