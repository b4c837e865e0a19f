"""Steps of Kubeflow Pipelines and Vertex AI Pipelines, run in the container; kfp is not needed.

python -m recordgen.kubeflow STEP --executor-input '{{$}}'

    execution.py  a step's input, its output, and where its artifacts are read and written
    convert.py    import files → dataset: the step of component.yaml
    check.py, statistics.py, train.py, evaluate.py, push.py
                  the further steps; steps/ holds the compiled file of each
"""
