"""Steps of Kubeflow Pipelines and Vertex AI Pipelines. They run in the container, without kfp.

python -m recordgen.kubeflow STEP --executor-input '{{$}}'

    execution.py  a step's input and output, and the paths of its artifacts
    convert.py    import files → dataset: the step of component.yaml
    fingerprint.py, check.py, statistics.py, tune.py, train.py, evaluate.py, predict.py, push.py
                  the further steps; steps/ holds the compiled file of each
"""
